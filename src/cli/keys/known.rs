//! What the store knows of a key, in words for a person, for the log and for scripts.

use std::time::{Duration, SystemTime};

use hookonce::claim::{Record, Recorded, Standing, State};
use hookonce::config::LogKeys;
use serde::Serialize;

use super::Named;

/// What is known of a key; as JSON it is the contract for scripts.
#[derive(Serialize)]
pub struct Known {
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
    pub fn new(named: &Named, found: Option<&Standing>, now: SystemTime) -> Self {
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
    pub fn in_short(&self) -> String {
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

    pub fn to_text(&self) -> String {
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
                line(
                    "until:",
                    &format!("{until} ({left} left{})", if self.is_open() { " unless renewed" } else { "" }),
                );
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
