//! What a configuration promises: every mistake is named, at its path, together with all others.

mod document;
mod files;
mod process;
mod provider;
mod route;
mod schema;
mod secrecy;
mod single;
mod unwise;

use super::{Config, Loaded, Problem, parse};

/// Parses with an environment in which `SET` is `value`, `EMPTY` is empty, and nothing else is set.
fn parse_text(text: &str) -> Result<Loaded, Vec<String>> {
    let environment = |name: &str| match name {
        "SET" => Some("value".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    parse(text, &environment).map_err(|problems| lines(&problems.0))
}

fn lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(Problem::to_string).collect()
}

/// A file with one route of `provider` that has nothing wrong and nothing unwise, and then `changes`: lines of
/// `key: value` for the route, or `!key`, which takes one away. Keys with a dot (`server.threads`) and `store` stand
/// outside the route.
fn file(provider: &str, changes: &str) -> String {
    let mut route: Vec<(&str, &str)> =
        vec![("name", "a"), ("path", "/a"), ("provider", provider), ("upstream", "http://127.0.0.1:3000")];
    match provider {
        "stripe" | "hotmart" | "meta" => route.push(("secret", "s")),
        "generic" => route.extend([("key", "[$.id]"), ("verify", "{token: header:X-Token}"), ("secret", "s")]),
        "evolution" | "marcha" => route.extend([("verify", "{token: header:X-Token}"), ("secret", "s")]),
        _ => {}
    }
    let mut server = vec![("listen", "127.0.0.1:8080")];
    let mut store = "{embedded: {path: ./test.db}}";
    for change in changes.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (key, value) = change.split_once(':').unwrap_or((change, ""));
        let (section, key) = match key.strip_prefix("server.") {
            Some(key) => (&mut server, key),
            None => (&mut route, key),
        };
        let removed = key.strip_prefix('!');
        section.retain(|(present, _)| *present != removed.unwrap_or(key));
        match (removed, key) {
            (Some(_), _) => {}
            (None, "store") => store = value,
            (None, _) => section.push((key, value)),
        }
    }
    let block = |entries: &[(&str, &str)]| -> String {
        entries.iter().map(|(key, value)| format!("    {key}: {value}\n")).collect()
    };
    format!("server:\n{}store: {store}\nroutes:\n  -\n{}", block(&server), block(&route))
}

/// One row of a table: a provider, changes to its good file, and exactly what is said about them.
type Row = (&'static str, &'static str, &'static [&'static str]);

fn each_gives_these_problems(rows: &[Row]) {
    for (provider, changes, expected) in rows {
        match parse_text(&file(provider, changes)) {
            Ok(_) => assert!(expected.is_empty(), "accepted, for {provider}: {changes}"),
            Err(problems) => assert_eq!(problems, *expected, "for {provider}: {changes}"),
        }
    }
}

fn each_gives_these_warnings(rows: &[Row]) {
    for (provider, changes, expected) in rows {
        let loaded = parse_text(&file(provider, changes));
        let warnings = loaded.map(|loaded| lines(&loaded.warnings));
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(warnings, Ok(expected), "for {provider}: {changes}");
    }
}

fn config(provider: &str, changes: &str) -> Config {
    match parse_text(&file(provider, changes)) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("for {provider}: {changes}: {problems:#?}"),
    }
}
