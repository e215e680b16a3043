//! `store`: exactly one of its kinds.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::config::document::{Fields, Node};
use crate::config::schema::{Embedded, Persistence, Redis, Store};
use crate::config::values::{self, Secret};

use super::provider::secret;

const PERSISTENCE: &[(&str, Persistence)] =
    &[("require", Persistence::Require), ("warn", Persistence::Warn), ("off", Persistence::Off)];

pub(super) fn read(root: &mut Fields<'_>) -> Store {
    let placeholder = || Store::Embedded(Embedded { path: PathBuf::new(), timeout: Duration::ZERO });
    let Some(node) = root.require("store") else { return placeholder() };
    node.fields(|fields| {
        let redis = fields.take("redis").map(|node| node.fields(redis));
        let embedded = fields.take("embedded").map(|node| node.fields(embedded));
        match (redis, embedded) {
            (Some(_), Some(_)) => fields.problem("must be one store, either `redis` or `embedded`"),
            (Some(redis), None) => return Store::Redis(redis),
            (None, Some(embedded)) => return Store::Embedded(embedded),
            (None, None) if node.is_mapping() => fields.problem("must hold `redis` or `embedded`"),
            (None, None) => {}
        }
        placeholder()
    })
}

fn redis(fields: &mut Fields<'_>) -> Redis {
    let url = fields.require("url").and_then(|node| {
        let url = secret(&node)?;
        redis_url(&url).map_err(|message| node.problem(message)).ok().map(|has_password| (url, has_password))
    });
    let password = fields.take("password").and_then(|node| {
        if url.as_ref().is_some_and(|(_, has_password)| *has_password) {
            node.problem("must not be said twice: the URL has a password already");
        }
        secret(&node)
    });
    Redis {
        url: url.map_or_else(|| Secret::new(""), |(url, _)| url),
        password,
        prefix: fields.or("prefix", "dedup".to_owned(), |node| node.read_text(values::key_word)),
        persistence: fields.or("persistence", Persistence::Require, |node| node.read(values::word(PERSISTENCE))),
        timeout: fields.or("timeout", Duration::from_millis(500), timeout),
    }
}

/// Whether the URL holds a password, if it is one that can be connected to. Nothing of it may be shown.
fn redis_url(url: &Secret) -> Result<bool, String> {
    let form = "such as `redis://127.0.0.1:6379/0`";
    let url = Url::parse(url.reveal()).map_err(|error| format!("must be a URL, {form} ({error})"))?;
    if !matches!(url.scheme(), "redis" | "rediss") {
        return Err(format!("must be a `redis://` or `rediss://` URL, {form}"));
    }
    match url.host_str() {
        None | Some("") => return Err(format!("must name a host, {form}")),
        Some("0.0.0.0" | "[::]") => return Err("must name one host: every address is none to connect to".to_owned()),
        Some(_) => {}
    }
    match url.path().trim_matches('/') {
        "" => {}
        database if database.parse::<u32>().is_ok() => {}
        _ => return Err(format!("must end with the number of a database or with none, {form}")),
    }
    Ok(url.password().is_some())
}

fn embedded(fields: &mut Fields<'_>) -> Embedded {
    let path = fields.require("path").and_then(|node| node.read_text(values::text));
    Embedded {
        path: path.map(PathBuf::from).unwrap_or_default(),
        timeout: fields.or("timeout", Duration::from_secs(2), timeout),
    }
}

fn timeout(node: Node<'_>) -> Option<Duration> {
    node.read(values::duration(Duration::from_millis(1)))
}
