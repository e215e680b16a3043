//! `hookonce explain`: what a route makes of a delivery, without sending or remembering anything.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use hookonce::config::{Loaded, ProviderKind, Route};
use hookonce::provider::{self, AuthFailure, Delivery, Verified};
use http::{HeaderName, HeaderValue};
use serde::Serialize;

use super::Failure;
use super::saved::Saved;

#[derive(Args)]
pub struct Options {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The name of the route
    #[arg(long, value_name = "NAME")]
    route: String,
    /// A header of the delivery, which replaces one that the file has; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = super::parse_header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The query of the delivery's URL, without the `?`
    #[arg(long)]
    query: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
    /// A body, or a whole delivery saved by `hookonce echo --save`; `-` reads it from stdin
    #[arg(value_name = "BODYFILE")]
    file: PathBuf,
}

/// What is said of a delivery; as JSON it is the contract for scripts.
#[derive(Debug, Serialize)]
struct Explanation {
    route: String,
    provider: &'static str,
    /// `None`: nothing is verified on this route.
    verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identifies: Option<&'static str>,
    events: Vec<ExplainedEvent>,
}

#[derive(Debug, Serialize)]
struct ExplainedEvent {
    kind: String,
    key: Option<String>,
    /// Why there is no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let Loaded { config, .. } = super::load(&options.config)?;
    let route = super::find_route(&config, &options.route)?;
    let saved = Saved::read(super::read_file(&options.file)?);
    let explanation = explain(route, options, saved);
    if options.json {
        super::show(&super::json(&explanation)?);
    } else {
        super::show(&explanation.to_text());
    }
    Ok(())
}

fn explain(route: &Route, options: &Options, saved: Saved) -> Explanation {
    let mut explanation = Explanation {
        route: route.name.clone(),
        provider: route.provider.kind.label(),
        verified: None,
        reason: None,
        identifies: None,
        events: Vec::new(),
    };
    let Some(provider) = provider::build(&route.provider, &route.namespace) else { return explanation };

    let (path, query) = match &saved.target {
        Some(target) => target.split_once('?').unwrap_or((target, "")),
        None => (super::path_of(route), ""),
    };
    let headers = super::with_given(saved.headers, &options.headers);
    let body = saved.body.into();
    let query = options.query.as_deref().unwrap_or(query);
    let delivery = Delivery { path, query, headers: &headers, body: &body };

    match provider.verify(&delivery, SystemTime::now()) {
        Ok(Verified::NotChecked) => {}
        Ok(Verified::BySecret(index)) => {
            explanation.verified = Some(true);
            if route.provider.secrets.len() > 1 {
                explanation.reason = Some(format!("by secret {} of the route's list", index + 1));
            }
        }
        Err(failure) => {
            explanation.verified = Some(false);
            explanation.reason = Some(why(failure, &saved.target));
        }
    }
    explanation.identifies = Some(provider.identifies());
    explanation.events = provider
        .extract(&delivery)
        .events
        .into_iter()
        .map(|event| match event.key {
            Ok(key) => {
                ExplainedEvent { kind: event.kind.into_owned(), key: Some(key.as_str().to_owned()), reason: None }
            }
            Err(unkeyed) => {
                ExplainedEvent { kind: event.kind.into_owned(), key: None, reason: Some(unkeyed.to_string()) }
            }
        })
        .collect();
    explanation
}

/// A bare body comes without the headers and the query that would prove it, which is worth saying.
fn why(failure: AuthFailure, target: &Option<String>) -> String {
    match failure {
        AuthFailure::Missing if target.is_none() => {
            format!("{failure}: give it with --header or --query, or take a file that `hookonce echo --save` wrote")
        }
        _ => failure.to_string(),
    }
}

impl Explanation {
    fn to_text(&self) -> String {
        let mut text = format!("route:      {} (provider {})\n", self.route, self.provider);
        let mut line = |label: &str, value: &str| {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{label:<11} {value}");
        };
        if self.provider == ProviderKind::None.label() {
            line("events:", "none are looked for: everything is streamed through");
            return text;
        }
        let verdict = match self.verified {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not checked (verify: off)",
        };
        match &self.reason {
            Some(reason) => line("verified:", &format!("{verdict}, {reason}")),
            None => line("verified:", verdict),
        }
        if let Some(identifies) = self.identifies {
            line("key is:", identifies);
        }
        line("events:", &self.events.len().to_string());
        for (index, event) in self.events.iter().enumerate() {
            let kind = &event.kind;
            match (&event.key, &event.reason) {
                (Some(key), _) => line(&format!("  {}.", index + 1), &format!("{kind}: {key}")),
                (None, reason) => {
                    let reason = reason.as_deref().unwrap_or_default();
                    line(&format!("  {}.", index + 1), &format!("{kind}: no key, it is always forwarded: {reason}"));
                }
            }
        }
        text
    }
}
