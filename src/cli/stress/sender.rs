//! Sending over HTTP/1.1, on connections that can be opened beforehand.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// More of an answer than anyone needs here.
const LONGEST_ANSWER: usize = 1024 * 1024;

/// What a connection and its framing decide for themselves, and what would keep a body from being sent at once.
const NOT_SENT: [http::HeaderName; 8] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
];

/// An `http://` URL.
#[derive(Clone, Debug)]
pub struct Target {
    uri: Uri,
    authority: String,
    address: String,
}

impl Target {
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| "must be a URL, such as `http://127.0.0.1:8080/webhooks/stripe`")?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
        let authority = authority
            .ok_or("must be an `http://` URL: where TLS is ended in front of the gateway, send behind that")?;
        let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
        Ok(Self { authority: authority.to_string(), address, uri })
    }

    /// Path and query.
    fn path(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(out)
    }
}

/// An open connection.
pub struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    pub async fn open(target: &Target) -> Result<Self, String> {
        let stream = TcpStream::connect(&target.address).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        // How it ends is told to whoever waits for an answer.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self(sender))
    }
}

/// The delivery.
pub struct Shot {
    target: Target,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Shot {
    /// `came_by` is the path and query by which a saved delivery came in.
    pub fn new(target: &Target, came_by: Option<&str>, mut headers: HeaderMap, body: Vec<u8>) -> Self {
        for name in &NOT_SENT {
            headers.remove(name);
        }
        if !headers.contains_key(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        }
        let path = match came_by {
            Some(came_by) if target.path() == "/" => came_by,
            _ => target.path(),
        };
        Self { path: path.to_owned(), target: target.clone(), headers, body: body.into() }
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn length(&self) -> usize {
        self.body.len()
    }

    /// Sends it, over `open` where that is a connection that still stands. Answers the status, `hookonce-result`, and
    /// the connection where it can be used again.
    pub async fn send(&self, open: Option<Connection>) -> Result<(u16, Option<String>, Option<Connection>), String> {
        let mut connection = match open {
            Some(open) if open.0.is_ready() => open,
            _ => Connection::open(&self.target).await?,
        };
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|_| format!("`{}` is no path", self.path))?;
        request.headers_mut().clone_from(&self.headers);
        let (status, headers, _) = exchange(&mut connection, &self.target, request).await?;
        let result = headers.get("hookonce-result").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let open = connection.0.ready().await.is_ok().then_some(connection);
        Ok((status, result, open))
    }
}

/// The text behind a URL, which must answer 200.
pub async fn get(target: &Target) -> Result<String, String> {
    let mut connection = Connection::open(target).await?;
    let mut request = Request::new(Full::default());
    *request.uri_mut() = target.path().parse().map_err(|_| format!("`{}` is no path", target.path()))?;
    let (status, _, body) = exchange(&mut connection, target, request).await?;
    if status != 200 {
        return Err(format!("it answers {status}"));
    }
    String::from_utf8(body.to_vec()).map_err(|_| "its answer is not text".to_owned())
}

async fn exchange(
    connection: &mut Connection,
    target: &Target,
    mut request: Request<Full<Bytes>>,
) -> Result<(u16, HeaderMap, Bytes), String> {
    let host = target.authority.parse().map_err(|_| format!("`{}` is no host", target.authority))?;
    request.headers_mut().insert(header::HOST, host);
    let answer = connection.0.send_request(request).await.map_err(|error| error.to_string())?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_ANSWER).collect().await.map_err(|error| error.to_string())?;
    Ok((head.status.as_u16(), head.headers, body.to_bytes()))
}
