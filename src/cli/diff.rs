//! `hookonce diff`: two deliveries of one event, and what the sender changed from one to the other. Whatever changed
//! must stay out of a key.

mod compared;

use std::path::{Path, PathBuf};

use clap::Args;
use hookonce::config::{self, Config, ProviderKind, Verify};
use hookonce::provider::{self, Delivery, Provider};
use serde::Serialize;

use self::compared::{Change, Comparison};
use super::Failure;
use super::saved::Saved;

#[derive(Args)]
#[command(after_help = "Exit codes: 0 compared, and the keys are equal where keys were asked for; 1 they are not")]
pub struct Options {
    /// Show the keys that this provider's own recipe gives: stripe, hotmart, meta, evolution or marcha
    #[arg(long, value_name = "PROVIDER", conflicts_with_all = ["config", "route"], value_parser = parse_provider)]
    provider: Option<ProviderKind>,
    /// Show the keys that a route of this configuration gives
    #[arg(long, value_name = "FILE", requires = "route")]
    config: Option<PathBuf>,
    /// The name of that route
    #[arg(long, value_name = "NAME", requires = "config")]
    route: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
    /// A body, or a whole delivery saved by `hookonce echo --save`
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Another delivery of the same event
    #[arg(value_name = "B")]
    second: PathBuf,
}

fn parse_provider(text: &str) -> Result<ProviderKind, String> {
    let presets = [
        ProviderKind::Stripe,
        ProviderKind::Hotmart,
        ProviderKind::Meta,
        ProviderKind::Evolution,
        ProviderKind::Marcha,
    ];
    presets.into_iter().find(|kind| kind.label() == text).ok_or_else(|| {
        "must be `stripe`, `hotmart`, `meta`, `evolution` or `marcha`; for others give --config and --route".to_owned()
    })
}

/// What is said of two deliveries; as JSON it is the contract for scripts.
#[derive(Serialize)]
struct Difference {
    #[serde(flatten)]
    comparison: Comparison,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Keys>,
}

/// The keys of each delivery, in its order. `None`: an event without a key.
#[derive(Serialize)]
struct Keys {
    a: Vec<Option<String>>,
    b: Vec<Option<String>>,
    equal: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let read = |file: &Path| super::read_file(file).map(Saved::read);
    let (first, second) = (read(&options.first)?, read(&options.second)?);
    let comparison = Comparison::of(&first, &second);
    let keys = find_provider(options)?.map(|(provider, path)| {
        let (a, b) = (keys(&*provider, &path, first), keys(&*provider, &path, second));
        // Without a key two copies are never known as one event.
        let equal = a == b && a.iter().all(Option::is_some);
        Keys { a, b, equal }
    });
    let difference = Difference { comparison, keys };
    super::show(&if options.json { super::json(&difference)? } else { difference.to_text() });
    match &difference.keys {
        Some(keys) if !keys.equal => Err(Failure::new("the two would not be taken for one event")
            .hint("if they are one, its `key` must be made of what stayed; if they are not, this is as it should be")),
        _ => Ok(()),
    }
}

/// The provider whose keys are asked for, and the path that bare bodies would have come in by.
fn find_provider(options: &Options) -> Result<Option<(std::sync::Arc<dyn Provider>, String)>, Failure> {
    if let Some(kind) = options.provider {
        // Nothing is verified here: the deliveries may be old.
        let config = config::Provider { kind, secrets: Vec::new(), verify: Verify::Off, key: None, events: None };
        return Ok(provider::build(&config, kind.label()).map(|provider| (provider, "/".to_owned())));
    }
    let (Some(file), Some(name)) = (&options.config, &options.route) else { return Ok(None) };
    let config: Config = super::load(file)?.config;
    let route = super::find_route(&config, name)?;
    match provider::build(&route.provider, &route.namespace) {
        Some(provider) => Ok(Some((provider, super::path_of(route).to_owned()))),
        None => Err(Failure::new(format!("route `{name}` has no keys: everything is streamed through"))),
    }
}

fn keys(provider: &dyn Provider, path: &str, saved: Saved) -> Vec<Option<String>> {
    let target = saved.target.unwrap_or_else(|| path.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let delivery = Delivery { path, query, headers: &saved.headers, body: &saved.body.into() };
    let events = provider.extract(&delivery).events;
    events.into_iter().map(|event| event.key.ok().map(|key| key.as_str().to_owned())).collect()
}

impl Difference {
    fn to_text(&self) -> String {
        let Comparison { changed, stayed } = &self.comparison;
        let mut text = String::new();
        let width = changed.iter().map(|change| change.place.chars().count()).max().unwrap_or_default();
        text.push_str("changed, so it must stay out of a key:\n");
        if changed.is_empty() {
            text.push_str("  nothing\n");
        }
        for Change { place, a, b } in changed {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
            text.push_str(&format!("  {place:<width$}  {} -> {}\n", shown(a), shown(b)));
        }
        text.push_str("stayed, so it can be part of one, if it tells this event from every other:\n");
        if stayed.is_empty() {
            text.push_str("  nothing\n");
        }
        for place in stayed {
            text.push_str(&format!("  {place}\n"));
        }
        if let Some(Keys { a, b, equal }) = &self.keys {
            text.push_str(if *equal { "keys: equal\n" } else { "keys: different\n" });
            for (name, keys) in [("A", a), ("B", b)] {
                for key in keys {
                    text.push_str(&format!("  {name}  {}\n", key.as_deref().unwrap_or("no key, always forwarded")));
                }
            }
        }
        text
    }
}
