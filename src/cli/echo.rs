//! `hookonce echo`: a sample handler, to see what a handler behind the gateway gets.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;
use super::saved::Saved;

/// Longer than any provider's deliveries.
const LONGEST_BODY: usize = 64 * 1024 * 1024;
/// What is printed of a body; the saved file has all of it.
const LONGEST_PRINTED: usize = 4000;
/// How long deliveries in flight may take when the handler is told to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// Headers that every request has and that say nothing about a webhook.
const DULL_HEADERS: [&str; 6] = ["accept", "accept-encoding", "connection", "content-length", "host", "user-agent"];

#[derive(Args)]
pub struct Options {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// The status of every answer
    #[arg(long, value_name = "STATUS", default_value = "200", value_parser = parse_status)]
    status: StatusCode,
    /// How long to wait before answering, such as `2s`
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    delay: Duration,
    /// A folder to save each delivery to, as a file that `explain`, `stress` and `diff` read
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
}

fn parse_status(text: &str) -> Result<StatusCode, String> {
    match text.parse::<StatusCode>() {
        Ok(status) if (200..600).contains(&status.as_u16()) => Ok(status),
        _ => Err("must be a status from 200 to 599".to_owned()),
    }
}

/// The handler: what it was told, and how many deliveries it has had.
struct Handler {
    options: Options,
    count: AtomicU64,
}

pub fn run(options: Options) -> Result<(), Failure> {
    if let Some(folder) = &options.save {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::new(format!("`{}` cannot be made: {error}", folder.display())))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> Result<(), Failure> {
    let listen = options.listen;
    let cannot_listen = |error: io::Error| Failure::new(format!("cannot listen on {listen}: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            cannot_listen(error).hint("something else listens there: choose another address with --listen")
        }
        _ => cannot_listen(error),
    })?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot_listen)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot_listen)?;
    super::tell(&format!("sample handler: listening on http://{address}"));

    let handler = Arc::new(Handler { options, count: AtomicU64::new(0) });
    let connections = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // A connection that is gone before it is taken, or too many of them: others may still come.
                Err(error) => {
                    super::tell(&format!("warning: a connection was not accepted: {error}"));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        let handler = Arc::clone(&handler);
        let service = service_fn(move |request| {
            let handler = Arc::clone(&handler);
            async move { handler.answer(request).await }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        // A connection that ends early is the other side's business.
        tokio::spawn(async move { drop(connection.await) });
    }
    drop(listener);
    drop(tokio::time::timeout(STOP_WITHIN, connections.shutdown()).await);
    Ok(())
}

impl Handler {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, http::Error> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, LONGEST_BODY).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                super::tell(&format!("warning: the body of {} {} did not come: {error}", head.method, head.uri));
                return Response::builder().status(StatusCode::BAD_REQUEST).body(Full::default());
            }
        };
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        super::show(&printed(number, &head.method, target, &head.headers, &body));
        if let Some(folder) = &self.options.save {
            let content = Saved::write(&head.method, target, &head.headers, &body);
            match save(folder, number, head.uri.path(), &content) {
                Ok(file) => super::show(&format!("   saved as {}\n", file.display())),
                Err(error) => super::tell(&format!("warning: #{number} was not saved: {error}")),
            }
        }
        tokio::time::sleep(self.options.delay).await;
        Response::builder()
            .status(self.options.status)
            .header(http::header::CONTENT_TYPE, "text/plain")
            .body(Full::from(format!("the sample handler got delivery {number}\n")))
    }
}

fn printed(number: u64, method: &Method, target: &str, headers: &HeaderMap, body: &[u8]) -> String {
    let mut text = format!("#{number} {method} {}, {} bytes\n", printable(target), body.len());
    for (name, value) in headers.iter().filter(|(name, _)| !DULL_HEADERS.contains(&name.as_str())) {
        text.push_str(&format!("   {name}: {}\n", printable(&String::from_utf8_lossy(value.as_bytes()))));
    }
    match std::str::from_utf8(body) {
        Ok("") => {}
        Ok(body) => {
            let shown: String = body.chars().take(LONGEST_PRINTED).collect();
            let rest = body.len() - shown.len();
            for line in shown.lines() {
                text.push_str(&format!("   {}\n", printable(line)));
            }
            if rest > 0 {
                text.push_str(&format!("   … and {rest} bytes more\n"));
            }
        }
        Err(_) => text.push_str("   (the body is not text)\n"),
    }
    text
}

/// Text from outside, without what could steer a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() && character != '\t' { '·' } else { character }).collect()
}

/// Writes a new file, named so that a folder reads in the order of arrival. Files of an earlier run are kept.
fn save(folder: &Path, number: u64, path: &str, content: &[u8]) -> io::Result<PathBuf> {
    let words: Vec<_> =
        path.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(60).collect();
    let mut number = number;
    loop {
        let file = folder.join(format!("{number:04}-{name}.http"));
        match std::fs::File::create_new(&file) {
            Ok(mut created) => {
                created.write_all(content)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_cannot_steer_the_terminal() {
        let mut headers = HeaderMap::new();
        headers.insert("x-token", http::HeaderValue::from_static("t"));
        headers.insert("host", http::HeaderValue::from_static("localhost"));
        let text = printed(7, &Method::POST, "/a", &headers, b"{\n\x1b[2J}");
        assert_eq!(text, "#7 POST /a, 7 bytes\n   x-token: t\n   {\n   ·[2J}\n");
    }

    #[test]
    fn a_long_body_is_cut_between_characters() {
        let body = "é".repeat(LONGEST_PRINTED + 1);
        let text = printed(1, &Method::POST, "/", &HeaderMap::new(), body.as_bytes());
        assert!(text.ends_with("… and 2 bytes more\n"), "{text}");
    }

    #[test]
    fn saved_deliveries_never_replace_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = save(folder.path(), 1, "/webhooks/stripe", b"one").expect("saved");
        let second = save(folder.path(), 1, "/webhooks/stripe", b"two").expect("saved");
        assert_eq!(first.file_name().expect("a name"), "0001-webhooks-stripe.http");
        assert_eq!(second.file_name().expect("a name"), "0002-webhooks-stripe.http");
        assert_eq!(std::fs::read(first).expect("kept"), b"one");
    }
}
