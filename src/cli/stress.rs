//! `hookonce stress`: one delivery, sent many times at the same moment. The test that finds the double charge before
//! the customer does, with a gateway in front of the handler or without one.

mod answers;
mod sender;
mod signing;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use http::{HeaderName, HeaderValue};
use tokio::sync::{Barrier, mpsc};

use self::answers::{Answer, Answers};
use self::sender::{Connection, Shot, Target};
use self::signing::Signer;
use super::Failure;
use super::saved::Saved;

#[derive(Args)]
#[command(after_help = "Exit codes: 0 exactly one was first, or by --probe the effect is one; 1 it was not, or it \
                        could not be judged")]
pub struct Options {
    /// Where to send it; without a path, to the one the saved delivery came in by
    #[arg(long, value_name = "URL", value_parser = Target::parse)]
    url: Target,
    /// A body, or a whole delivery saved by `hookonce echo --save`; `-` reads it from stdin
    #[arg(long, value_name = "FILE")]
    body: PathBuf,
    /// How often to send it
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    times: usize,
    /// How many of these at the same moment, each on a connection of its own
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    parallel: usize,
    /// Sign it as this provider does now: stripe, hotmart or meta
    #[arg(long, value_name = "PROVIDER", requires = "secret", value_parser = Signer::parse)]
    sign_as: Option<Signer>,
    /// The secret to sign with
    #[arg(long, value_name = "SECRET", requires = "sign_as")]
    secret: Option<String>,
    /// A header of the delivery, which replaces one that the file has; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = super::parse_header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Judge by the effect: a URL that answers a number (rows, charges), read before and after. It must grow by one
    #[arg(long, value_name = "URL", value_parser = Target::parse)]
    probe: Option<Target>,
    /// How long an answer may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    timeout: Duration,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("must be a whole number from 1 to 100000".to_owned()),
    }
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let saved = Saved::read(super::read_file(&options.body)?);
    let mut headers = super::with_given(saved.headers, &options.headers);
    if let (Some(signer), Some(secret)) = (options.sign_as, &options.secret) {
        for (name, value) in signer.sign(secret, &saved.body)? {
            headers.insert(name, value);
        }
    }
    let shot = Shot::new(&options.url, saved.target.as_deref(), headers, saved.body);
    runtime.block_on(fire(options, shot))
}

async fn fire(options: &Options, shot: Shot) -> Result<(), Failure> {
    let before = probe(options).await?;
    let workers = options.parallel.min(options.times);
    let shot = Arc::new(shot);
    let together = Arc::new(Barrier::new(workers));
    let left = Arc::new(AtomicUsize::new(options.times));
    let (tell, mut told) = mpsc::unbounded_channel();
    super::tell(&format!(
        "sending {} bytes to {}, {} times, {workers} at the same moment",
        shot.length(),
        options.url,
        options.times
    ));
    for _ in 0..workers {
        let (shot, together, left, tell) = (Arc::clone(&shot), Arc::clone(&together), Arc::clone(&left), tell.clone());
        let timeout = options.timeout;
        tokio::spawn(async move {
            // Everyone is connected before the first sends.
            let mut connection = tokio::time::timeout(timeout, Connection::open(shot.target())).await.ok();
            together.wait().await;
            while left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
                let begun = Instant::now();
                let open = connection.take().and_then(Result::ok);
                let sent = tokio::time::timeout(timeout, shot.send(open));
                let answer = match sent.await {
                    Ok(Ok((status, result, open))) => {
                        connection = open.map(Ok);
                        Answer::came(status, result, begun.elapsed())
                    }
                    Ok(Err(error)) => Answer::failed(&error, begun.elapsed()),
                    Err(_) => Answer::failed(&format!("no answer within {timeout:?}"), begun.elapsed()),
                };
                if tell.send(answer).is_err() {
                    return;
                }
            }
        });
    }
    drop(tell);

    let begun = Instant::now();
    let mut answers = Answers::default();
    let is_watched = std::io::stderr().is_terminal();
    while let Some(answer) = told.recv().await {
        answers.add(answer);
        if is_watched {
            super::tell_in_place(&format!("{} of {} answered", answers.count(), options.times));
        }
    }
    if is_watched {
        super::tell("");
    }
    super::show(&answers.to_table(begun.elapsed()));
    match (before, probe(options).await?) {
        (Some(before), Some(after)) => judge_effect(before, after),
        _ => answers.judge(),
    }
}

fn judge_effect(before: i64, after: i64) -> Result<(), Failure> {
    let effect = after.saturating_sub(before);
    super::show(&format!("effect: {before} before, {after} after: {effect}\n"));
    if effect == 1 { Ok(()) } else { Err(Failure::new(format!("the effect is {effect}, not 1"))) }
}

/// The number that the probe shows now.
async fn probe(options: &Options) -> Result<Option<i64>, Failure> {
    let Some(target) = &options.probe else { return Ok(None) };
    let unreadable = |why: &str| Failure::new(format!("the probe `{target}` shows no number: {why}"));
    let text = tokio::time::timeout(options.timeout, sender::get(target)).await;
    let text = text.map_err(|_| unreadable("no answer in time"))?.map_err(|error| unreadable(&error))?;
    let number = text.trim().parse().map_err(|_| {
        unreadable("its answer must be a whole number and nothing else")
            .hint("give a URL that answers, say, `SELECT count(*)` of the handler's table")
    })?;
    Ok(Some(number))
}
