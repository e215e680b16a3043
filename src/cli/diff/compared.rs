//! Two deliveries, place by place: headers by their names, a JSON body by the paths of its single values.

use std::collections::BTreeMap;

use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;

use crate::cli::saved::Saved;

/// What is shown of a value.
const LONGEST_VALUE: usize = 60;

/// Headers of the connection. That they stayed says nothing: no key is made of them.
const OF_THE_CONNECTION: [&str; 8] = [
    "header:accept",
    "header:accept-encoding",
    "header:connection",
    "header:content-length",
    "header:content-type",
    "header:host",
    "header:transfer-encoding",
    "header:user-agent",
];

/// What changed from one delivery to the other, and what stayed, as `key` would name it.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Comparison {
    pub changed: Vec<Change>,
    pub stayed: Vec<String>,
}

/// A place with two values. `None`: it is absent.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Change {
    pub place: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

impl Comparison {
    pub fn of(first: &Saved, second: &Saved) -> Self {
        let mut comparison = Self { changed: Vec::new(), stayed: Vec::new() };
        // Bare bodies come without headers, which says nothing about them.
        if first.target.is_some() && second.target.is_some() {
            comparison.add(&headers(&first.headers), &headers(&second.headers));
            comparison.add(&queries(first), &queries(second));
        }
        match (serde_json::from_slice(&first.body), serde_json::from_slice(&second.body)) {
            (Ok(a), Ok(b)) => comparison.add(&values(&a), &values(&b)),
            _ => {
                let whole = |body: &[u8]| vec![("body".to_owned(), String::from_utf8_lossy(body).into_owned())];
                comparison.add(&whole(&first.body), &whole(&second.body));
            }
        }
        comparison
    }

    /// Compares two lists of places and values, in the order of the first.
    fn add(&mut self, first: &[(String, String)], second: &[(String, String)]) {
        let index = |list: &[(String, String)]| list.iter().cloned().collect::<BTreeMap<_, _>>();
        let (in_first, in_second) = (index(first), index(second));
        let only_second = second.iter().filter(|(place, _)| !in_first.contains_key(place));
        for (place, _) in first.iter().chain(only_second) {
            match (in_first.get(place), in_second.get(place)) {
                (Some(a), Some(b)) if a == b && OF_THE_CONNECTION.contains(&place.as_str()) => {}
                (Some(a), Some(b)) if a == b => self.stayed.push(place.clone()),
                (a, b) => {
                    let shown = |value: Option<&String>| value.map(|value| shortened(value));
                    self.changed.push(Change { place: place.clone(), a: shown(a), b: shown(b) });
                }
            }
        }
    }
}

/// Each header once, with all its values.
fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let values = |name| {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        values.collect::<Vec<_>>().join(", ")
    };
    headers.keys().map(|name| (format!("header:{name}"), values(name))).collect()
}

fn queries(saved: &Saved) -> Vec<(String, String)> {
    let query = saved.target.as_deref().and_then(|target| target.split_once('?')).map_or("", |(_, query)| query);
    url::form_urlencoded::parse(query.as_bytes())
        .map(|(name, value)| (format!("query:{name}"), value.into_owned()))
        .collect()
}

/// Every single value with its path. Text stands in quotes, so that `"1"` and `1` differ.
fn values(document: &Value) -> Vec<(String, String)> {
    fn walk(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (name, member) in members {
                    walk(member, &format!("{path}{}", step(name)), found);
                }
            }
            Value::Array(elements) if !elements.is_empty() => {
                for (index, element) in elements.iter().enumerate() {
                    walk(element, &format!("{path}[{index}]"), found);
                }
            }
            single => found.push((path.to_owned(), single.to_string())),
        }
    }
    let mut found = Vec::new();
    walk(document, "$", &mut found);
    found
}

/// A name in a JSONPath as RFC 9535 writes it.
fn step(name: &str) -> String {
    let plain = !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if plain && !name.is_empty() {
        format!(".{name}")
    } else {
        format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
    }
}

/// A value in one line, without what could steer a terminal.
fn shortened(value: &str) -> String {
    let mut characters = value.chars().map(|character| if character.is_control() { '·' } else { character });
    let mut text: String = characters.by_ref().take(LONGEST_VALUE).collect();
    if characters.next().is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(first: &str, second: &str) -> Comparison {
        Comparison::of(&Saved::read(first.into()), &Saved::read(second.into()))
    }

    fn change(place: &str, a: Option<&str>, b: Option<&str>) -> Change {
        Change { place: place.to_owned(), a: a.map(str::to_owned), b: b.map(str::to_owned) }
    }

    #[test]
    fn values_are_compared_by_their_paths_whatever_their_order() {
        let compared = compare(
            r#"{"id": 1, "at": "x", "in": [{"a-b": true}], "old": null}"#,
            r#"{"at":"y","in":[{"a-b":true}],"id":1,"new":{}}"#,
        );
        let changed = [
            change("$.at", Some("\"x\""), Some("\"y\"")),
            change("$.old", Some("null"), None),
            change("$.new", None, Some("{}")),
        ];
        assert_eq!(compared.changed, changed);
        assert_eq!(compared.stayed, ["$.id", "$.in[0]['a-b']"]);
    }

    #[test]
    fn numbers_and_texts_that_look_alike_differ() {
        assert_eq!(compare(r#"{"id":12}"#, r#"{"id":"12"}"#).changed.len(), 1);
        assert_eq!(compare(r#"{"id":1.0}"#, r#"{"id":1.00}"#).changed.len(), 1, "a key has a number's own digits");
    }

    #[test]
    fn headers_and_queries_of_whole_deliveries_are_compared() {
        let compared = compare(
            "POST /a?b=c&d=1 HTTP/1.1\nHost: a\nX-Try: 1\nX-Id: z\n\n{}",
            "POST /a?b=c&d=2 HTTP/1.1\nHost: a\nX-Try: 2\nX-Id: z\n\n{}",
        );
        let places: Vec<_> = compared.changed.iter().map(|change| change.place.as_str()).collect();
        assert_eq!(places, ["header:x-try", "query:d"]);
        assert_eq!(compared.stayed, ["header:x-id", "query:b", "$"]);
        assert_eq!(
            compare("POST /a HTTP/1.1\nX-Try: 1\n\n{}", "{}").changed,
            [],
            "a bare body has no headers to compare"
        );
    }

    #[test]
    fn what_is_not_json_is_compared_whole() {
        assert_eq!(compare("a=1", "a=2").changed, [change("body", Some("a=1"), Some("a=2"))]);
        assert_eq!(compare("a=1", "a=1").stayed, ["body"]);
    }
}
