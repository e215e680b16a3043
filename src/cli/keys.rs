//! `hookonce keys`: what the store remembers of one event, and how to make it forget.
//!
//! Works beside running gateways, on the store that the configuration names. Exit codes beside those of every command:
//! 3 where the store does not know the key, 4 where `forget` left an open claim alone.

mod audit;
mod known;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use hookonce::claim::{Forgotten, Standing, Terms};
use hookonce::config::{Config, LogKeys, Store};
use hookonce::event::{EventKey, HASHED};
use hookonce::metrics::Metrics;
use hookonce::store::{self, ClaimStore};

use self::known::Known;
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
    #[arg(value_name = "KEY|ROUTE PART", required = true)]
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
