//! `hookonce keys`: what the store remembers of one event, and how to make it forget.
//!
//! Works beside running gateways, on the store that the configuration names. Exit codes beside those of every command:
//! 3 where the store does not know the key, 4 where `forget` left an open claim alone.

mod audit;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use hookonce::claim::{Forgotten, Record, Recorded, Standing, State, Terms};
use hookonce::config::{Config, LogKeys, Store};
use hookonce::event::{EventKey, HASHED};
use hookonce::metrics::Metrics;
use hookonce::store::{self, ClaimStore};
use serde::Serialize;

use super::Failure;

/// The store does not know the key.
const EXIT_ABSENT: u8 = 3;
/// An open claim was left alone.
const EXIT_OPEN: u8 = 4;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the store did not answer, 3 the store does not know the key, \
                          4 an open claim was left alone, 78 the configuration cannot work";

#[derive(Subcommand)]
pub enum Command {
    /// Show what the store knows of a key: its state, since when and until when, and what the handler answered
    #[command(after_help = EXIT_CODES)]
    Get(Get),
    /// Free a key, so that the next delivery of its event is sent again. Asks nothing, and logs who did it
    ///
    /// A gateway that is just waiting to record a delivery of this event records it all the same.
    #[command(after_help = EXIT_CODES)]
    Forget(Forget),
}

#[derive(Args)]
pub struct Get {
    #[command(flatten)]
    which: Which,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Forget {
    #[command(flatten)]
    which: Which,
    /// Also free a key whose event is in flight: its copies may then be sent while it is
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
struct Which {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// A key as the log, `explain` or Redis shows it; or the route's name and the parts of the key
    #[arg(value_name = "KEY | ROUTE PART…", required = true)]
    words: Vec<String>,
}

/// A key, and what the configuration says about it.
struct Named {
    key: EventKey,
    terms: Terms,
    config: Config,
}

pub fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Get(options) => get(options),
        Command::Forget(options) => forget(options),
    }
}

fn get(options: &Get) -> Result<ExitCode, Failure> {
    let named = options.which.find()?;
    let found = ask(&named, async |store| store.look(&named.key, named.terms).await)?;
    let known = Known::new(&named, found.as_ref(), SystemTime::now());
    super::show(&if options.json { super::json(&known)? } else { known.to_text() });
    Ok(if found.is_some() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_ABSENT) })
}

fn forget(options: &Forget) -> Result<ExitCode, Failure> {
    let named = options.which.find()?;
    let key = &named.key;
    audit::start(named.config.server.log);
    let answer = ask(&named, async |store| store.forget(key, named.terms, options.force).await);
    let now = SystemTime::now();
    let told = |standing: &Standing| Known::new(&named, Some(standing), now);
    let (result, was) = match &answer {
        Ok(Forgotten::Freed(was)) => ("freed", Some(told(was).in_short())),
        Ok(Forgotten::Absent) => ("absent", None),
        Ok(Forgotten::Open(is)) => ("left, it is open", Some(told(is).in_short())),
        Err(_) => ("not known, the store did not answer", None),
    };
    let logged = match named.config.server.log.keys {
        LogKeys::Full => key.as_str().to_owned(),
        LogKeys::Hashed => key.hashed(),
    };
    audit::tell(&logged, result, was.as_deref(), options.force);
    match answer? {
        Forgotten::Freed(was) => {
            super::show(&format!("{}forgotten: the next delivery of this event is sent\n", told(&was).to_text()));
            Ok(ExitCode::SUCCESS)
        }
        Forgotten::Absent => {
            super::show(&Known::new(&named, None, now).to_text());
            Ok(ExitCode::from(EXIT_ABSENT))
        }
        Forgotten::Open(is) => Err(Failure {
            exit: EXIT_OPEN,
            ..Failure::new(format!("`{key}` is in flight ({})", told(&is).in_short())).hint(
                "wait until it is settled; with --force it is freed now, and a copy may be sent while it is in flight",
            )
        }),
    }
}

/// Opens the store and asks it something.
fn ask<T>(
    named: &Named,
    question: impl AsyncFnOnce(&dyn ClaimStore) -> Result<T, store::StoreError>,
) -> Result<T, Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::new(format!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| cannot(&error))?;
    let metrics = Arc::new(Metrics::new(hookonce::VERSION).map_err(|error| cannot(&error))?);
    runtime.block_on(async {
        let store = store::open_beside(&named.config.store, metrics).map_err(|error| {
            let failure = Failure::new(error.to_string());
            match error.hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
        question(&*store).await.map_err(|error| Failure::new(error.to_string()))
    })
}

impl Which {
    fn find(&self) -> Result<Named, Failure> {
        let config = super::load(&self.config)?.config;
        let (route, key) = match self.words.as_slice() {
            [key] if key.contains(':') => {
                if key.starts_with(HASHED) {
                    return Err(Failure::new(format!("`{key}` is a hash, which cannot be turned back into its key"))
                        .hint("give the route and the parts; `hookonce explain` shows the key of a saved delivery"));
                }
                let prefix = match &config.store {
                    Store::Redis(redis) => redis.prefix.as_str(),
                    Store::Embedded(_) => "",
                };
                let in_redis = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(':'));
                let by_namespace = |key: &str| {
                    let namespace = key.split(':').next().unwrap_or_default();
                    config.routes.iter().find(|route| route.namespace == namespace)
                };
                let found = by_namespace(key).map(|route| (route, key.as_str()));
                let found = found.or_else(|| in_redis.and_then(|key| Some((by_namespace(key)?, key))));
                let (route, key) = found.ok_or_else(|| {
                    let namespaces: Vec<_> =
                        config.routes.iter().map(|route| format!("`{}`", route.namespace)).collect();
                    Failure::new(format!("no route's keys begin as `{key}` does"))
                        .hint(format!("they begin with {}", namespaces.join(", ")))
                })?;
                (route, EventKey::from_encoded(key))
            }
            [name, parts @ ..] => {
                let route = super::find_route(&config, name)?;
                if parts.is_empty() {
                    return Err(Failure::new(format!("`{name}` is a route: the parts of the key are missing"))
                        .hint("`hookonce explain` shows the key of a saved delivery"));
                }
                (route, EventKey::new(&route.namespace, parts.iter().map(|part| Some(part.as_str()))))
            }
            [] => return Err(Failure::new("no key is given")),
        };
        let terms = Terms { lease: route.lease, window: route.window };
        Ok(Named { key, terms, config })
    }
}

/// What is known of a key; as JSON it is the contract for scripts.
#[derive(Serialize)]
struct Known {
    key: String,
    /// The key as the log shows it, where that is not the key itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    logged_as: Option<String>,
    /// `absent`, `claimed`, `sending`, `done`, `done-unknown`
    state: &'static str,
    since: Option<String>,
    until: Option<String>,
    /// When the first delivery of the event was answered by the handler.
    first_seen: Option<String>,
    upstream_status: Option<u16>,
    #[serde(skip)]
    left: Option<Duration>,
}

impl Known {
    fn new(named: &Named, found: Option<&Standing>, now: SystemTime) -> Self {
        let written = |time: SystemTime| humantime::format_rfc3339_millis(time).to_string();
        let hashed = named.config.server.log.keys == LogKeys::Hashed;
        let mut known = Self {
            key: named.key.as_str().to_owned(),
            logged_as: hashed.then(|| named.key.hashed()),
            state: "absent",
            since: None,
            until: None,
            first_seen: None,
            upstream_status: None,
            left: None,
        };
        let Some(Standing { state, remaining }) = found else { return known };
        known.left = Some(*remaining);
        known.until = now.checked_add(*remaining).map(written);
        // A claim is renewed all the time, and does not say when it began.
        let renewed = |whole: Duration| now.checked_sub(whole.saturating_sub(*remaining)).map(written);
        match state {
            State::Claimed => (known.state, known.since) = ("claimed", renewed(named.terms.lease)),
            State::Sending => (known.state, known.since) = ("sending", renewed(named.terms.window)),
            State::Done(Record { at, result }) => {
                known.since = at.map(written);
                known.first_seen.clone_from(&known.since);
                match result {
                    Recorded::Delivered(status) => (known.state, known.upstream_status) = ("done", Some(*status)),
                    Recorded::Unknown => known.state = "done-unknown",
                }
            }
        }
        known
    }

    fn is_open(&self) -> bool {
        matches!(self.state, "claimed" | "sending")
    }

    /// One line, for the log.
    fn in_short(&self) -> String {
        let mut text = self.state.to_owned();
        if let Some(since) = &self.since {
            text.push_str(if self.is_open() { ", last renewed " } else { " since " });
            text.push_str(since);
        }
        if let Some(status) = self.upstream_status {
            text.push_str(&format!(" ({status})"));
        }
        text
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, value: &str| text.push_str(&format!("{label:<11} {value}\n"));
        line("key:", &self.key);
        if let Some(logged_as) = &self.logged_as {
            line("in the log:", logged_as);
        }
        let meaning = match self.state {
            "absent" => "absent: the store does not know this key, its event would be sent",
            "claimed" => "claimed: in flight",
            "sending" => "sending: in flight, and not sent again whatever comes of it",
            "done" => "done: copies are answered as duplicates",
            _ => "done, outcome unknown: what was sent may have been handled, and is not sent again",
        };
        line("state:", meaning);
        let since = self.since.as_deref().unwrap_or("not recorded: its gateway died while sending");
        match (&self.until, self.left) {
            (Some(until), Some(left)) => {
                line(if self.is_open() { "renewed:" } else { "since:" }, since);
                let left = humantime::format_duration(Duration::from_secs(left.as_secs()));
                line("until:", &format!("{until} ({left} left{})", if self.is_open() { " unless renewed" } else { "" }));
            }
            _ => return text,
        }
        if let Some(first_seen) = &self.first_seen {
            line("first seen:", first_seen);
        }
        if let Some(status) = self.upstream_status {
            line("upstream:", &status.to_string());
        }
        text
    }
}
