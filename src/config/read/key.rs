//! `routes[].key` and `events`: what identifies an event.

use http::HeaderName;
use serde_json_path::JsonPath;

use crate::config::document::Node;
use crate::config::schema::{KeyPart, KeySource, Place};

const FORMS: &str = "must be a JSONPath (`$.id`), `header:Name`, `query:name` or a literal in quotes of its own \
                     (`\"'word'\"`), with a `?` at its end where it may be absent";

/// `key`, for a route with or without `events`.
pub(super) fn key(node: &Node<'_>, has_events: bool) -> Option<Vec<KeyPart>> {
    let items = node.items();
    let parts: Vec<KeyPart> = items.iter().filter_map(|item| item.read_text(|text| part(text, has_events))).collect();
    if !node.is_list() || parts.len() < items.len() {
        return None;
    }
    if parts.iter().all(|part| matches!(part.source, KeySource::Literal(_))) {
        node.problem("must hold something of the delivery: with literals alone, every event would be the same one");
    } else if has_events && !parts.iter().any(|part| matches!(part.source, KeySource::Item(_))) {
        node.problem("must look into the element (`@.id`): without that, all events of a delivery would be one");
    }
    Some(parts)
}

fn part(written: &str, has_events: bool) -> Result<KeyPart, String> {
    let (text, optional) = match written.strip_suffix('?') {
        Some(text) => (text, true),
        None => (written, false),
    };
    let source = if text.starts_with('$') {
        KeySource::Body(json_path(text)?)
    } else if let Some(rest) = text.strip_prefix('@') {
        if !has_events {
            return Err("`@` is the element that `events` finds: say `events`, or begin with `$`".to_owned());
        }
        KeySource::Item(json_path(&format!("${rest}"))?)
    } else if let Some(literal) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        if literal.is_empty() || literal.contains('\'') || optional {
            return Err("a literal must be a word in single quotes, and cannot be absent".to_owned());
        }
        KeySource::Literal(literal.to_owned())
    } else {
        match place(text).map_err(|_| FORMS)? {
            Place::Header(name) => KeySource::Header(name),
            Place::Query(name) => KeySource::Query(name),
        }
    };
    Ok(KeyPart { written: text.to_owned(), source, optional })
}

/// `events`: where the elements of a batch are.
pub(super) fn events(text: &str) -> Result<String, String> {
    json_path(text)
}

fn json_path(text: &str) -> Result<String, String> {
    match JsonPath::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "must be a JSONPath as RFC 9535 has it, such as `$.id` (wrong from character {} on)",
            error.position() + 1
        )),
    }
}

/// `header:X-Name` or `query:name`.
pub(super) fn place(text: &str) -> Result<Place, String> {
    let forms = || "must be `header:Name` or `query:name`".to_owned();
    match text.split_once(':') {
        Some(("header", name)) => match HeaderName::from_bytes(name.as_bytes()) {
            Ok(_) => Ok(Place::Header(name.to_owned())),
            Err(_) => Err(forms()),
        },
        Some(("query", name)) if !name.is_empty() => Ok(Place::Query(name.to_owned())),
        _ => Err(forms()),
    }
}
