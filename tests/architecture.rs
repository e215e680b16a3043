//! The shape of the source: who may use whom, where foreign types may appear, and how long a file may be.
//!
//! The rules are those of the map in `src/lib.rs`. They are checked on the text of the files, so that a breach is told
//! with its file and line.

#![allow(clippy::expect_used, reason = "a test ends where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};

/// What each module may use of this crate, beside itself. Left may use right, nothing else.
const MAY_USE: [(&str, &[&str]); 14] = [
    ("event", &[]),
    ("config", &[]),
    ("claim", &["event"]),
    ("metrics", &["event"]),
    ("provider", &["config", "event"]),
    ("route", &["config", "event", "provider"]),
    ("store", &["config", "event", "claim", "metrics"]),
    ("dedup", &["event", "claim"]),
    ("proxy", &["config", "route", "provider", "store", "dedup", "event", "claim", "metrics"]),
    ("admin", &["metrics", "store"]),
    ("telemetry", &["config"]),
    (
        "server",
        &["event", "config", "claim", "metrics", "provider", "route", "store", "dedup", "proxy", "admin", "telemetry"],
    ),
    (
        "cli",
        &["event", "config", "claim", "metrics", "provider", "route", "store", "dedup", "admin", "telemetry", "server"],
    ),
    ("main", &["cli"]),
];

/// Crates whose types stay in a few places: the crate, and the beginnings of the paths below `src` that may name it.
const ONLY_IN: [(&str, &[&str]); 8] = [
    ("pingora", &["proxy", "admin", "server"]),
    ("pingora_core", &["proxy", "admin", "server"]),
    ("pingora_http", &["proxy", "admin", "server"]),
    ("pingora_proxy", &["proxy", "admin", "server"]),
    ("redis", &["store/redis"]),
    ("rusqlite", &["store/embedded"]),
    ("serde_yaml", &["config"]),
    ("clap", &["cli"]),
];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "types", "misc"];

const LONGEST_FILE: usize = 400;
/// Lists of cases are long without being hard to read.
const LONGEST_TEST: usize = 600;

/// One file of the source: its path below `src` or `tests`, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The top module that the file belongs to: `store` for `store/redis.rs`.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// The lines of code with their numbers, without comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(number, line)| {
            // A `//` inside a text literal cuts it short, which hides nothing that is looked for here.
            (number, line.split_once(" //").map_or(line, |(code, _)| code))
        })
    }
}

#[test]
fn modules_use_only_what_stands_below_them() {
    let faults: Vec<_> = sources("src").iter().flat_map(imports_out_of_order).collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn foreign_types_stay_where_they_belong() {
    let faults: Vec<_> = sources("src").iter().flat_map(foreign_types).collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn every_file_is_one_idea_with_a_name_and_an_introduction() {
    let faults_in = |folder, longest| -> Vec<String> {
        sources(folder).iter().flat_map(|source| faults_of_form(source, longest)).collect()
    };
    let faults = [faults_in("src", LONGEST_FILE), faults_in("tests", LONGEST_TEST)].concat();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The table of reports from the field names tests, and a test that is renamed must not drop out of it.
#[test]
fn each_report_from_the_field_points_to_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let table = read(&root.join("tests/gateway/main.rs"));
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("//! | ") && line.contains("::")).collect();
    assert!(rows.len() > 30, "the table has {} rows", rows.len());
    for name in rows.iter().flat_map(|row| row.split('`').skip(1).step_by(2)) {
        let (file, test) = name.rsplit_once("::").expect("`file::test`");
        let folder = if file.contains('/') { root.to_owned() } else { root.join("tests/gateway") };
        let text = read(&folder.join(format!("{file}.rs")));
        assert!(text.contains(&format!("fn {test}(")), "`{name}` is in no file");
    }
}

fn imports_out_of_order(source: &Source) -> Vec<String> {
    let module = source.module();
    if module == "lib" {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
        return vec![format!("{}: `{module}` is not in the table of who may use whom", source.path)];
    };
    let mut faults = Vec::new();
    for (line, used) in used_modules(source) {
        let known = MAY_USE.iter().any(|(name, _)| *name == used);
        if known && used != module && !allowed.contains(&used.as_str()) {
            faults.push(format!("{}:{line}: `{module}` must not use `{used}`", source.path));
        }
    }
    faults
}

/// The modules of this crate that a file names, as `crate::x`, `hookonce::x`, or inside `use crate::{x, y}`.
fn used_modules(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut group: Option<String> = None;
    for (number, line) in source.code() {
        // A group may stand over several lines.
        if let Some(open) = &mut group {
            open.push_str(line);
            if balanced(open) {
                found.extend(top_of_group(open).into_iter().map(|name| (number, name)));
                group = None;
            }
            continue;
        }
        for root in ["crate::", "hookonce::"] {
            for (at, _) in line.match_indices(root) {
                if line[..at].ends_with(is_word) {
                    continue;
                }
                let rest = &line[at + root.len()..];
                if !rest.starts_with('{') {
                    found.push((number, first_word(rest)));
                } else if balanced(rest) {
                    found.extend(top_of_group(rest).into_iter().map(|name| (number, name)));
                } else {
                    group = Some(rest.to_owned());
                }
            }
        }
    }
    found
}

/// `{a::b, c::{d, e}}` names `a` and `c`.
fn top_of_group(group: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut expects_name = false;
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && (character == '{' || character == ',') {
            expects_name = true;
        } else if expects_name && is_word(character) {
            names.push(first_word(&group[at..]));
            expects_name = false;
        }
    }
    names
}

fn balanced(text: &str) -> bool {
    text.matches('{').count() <= text.matches('}').count()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|character| is_word(*character)).collect()
}

fn foreign_types(source: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in source.code() {
        for (name, places) in ONLY_IN {
            let names_crate = line.match_indices(name).any(|(at, _)| {
                let before = &line[..at];
                // `crate::store::redis::x` names a module of ours, `::redis::x` the crate.
                let in_a_path = before.ends_with("::") && !before.ends_with(" ::");
                !before.ends_with(is_word) && !in_a_path && line[at + name.len()..].starts_with("::")
            });
            let is_ours = name == "redis" && source.path.starts_with("store/mod");
            if names_crate && !is_ours && !places.iter().any(|place| source.path.starts_with(place)) {
                faults.push(format!("{}:{number}: `{name}` may be named only in {}", source.path, places.join(", ")));
            }
        }
    }
    faults
}

fn faults_of_form(source: &Source, longest: usize) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = source.text.lines().count();
    if lines > longest {
        faults.push(format!("{}: {lines} lines, more than {longest}: it is more than one idea", source.path));
    }
    let introduction = source.text.lines().find_map(|line| line.strip_prefix("//!")).unwrap_or_default();
    if !source.text.starts_with("//!") || introduction.trim().is_empty() {
        faults.push(format!("{}: does not begin with `//!` and what it is about", source.path));
    }
    for part in source.path.split('/') {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        if EMPTY_NAMES.contains(&name) {
            faults.push(format!("{}: `{name}` says nothing about what is inside", source.path));
        }
    }
    faults
}

fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    assert!(!found.is_empty(), "no sources below {}", root.display());
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a text");
            let path = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            found.push(Source { path, text });
        }
    }
}

/// The checks find what is planted, and take what is right.
mod planted {
    use super::{Source, faults_of_form, foreign_types, imports_out_of_order};

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn imports() {
        for (path, text, faults) in [
            ("claim.rs", "use crate::event::EventKey;", 0),
            ("claim.rs", "// use crate::store::ClaimStore;", 0),
            ("claim.rs", "use crate::store::ClaimStore;", 1),
            ("claim.rs", "fn f() -> crate::store::Health {}", 1),
            ("dedup/plan.rs", "use crate::{claim::Found, event::{Event, store}};", 0),
            ("dedup/plan.rs", "use crate::{\n    claim::Found,\n    proxy::{a, b},\n    store,\n};", 2),
            ("store/redis/script.rs", "use crate::store::redis::x;\nuse crate::dedup::plan;", 1),
            ("cli/run.rs", "use hookonce::proxy::Gateway;", 1),
            ("cli/run.rs", "hookonce::server::run(config)", 0),
            ("somewhere.rs", "", 1),
        ] {
            let found = imports_out_of_order(&source(path, text));
            assert_eq!(found.len(), faults, "{path}: `{text}`: {found:?}");
        }
    }

    #[test]
    fn foreign() {
        for (path, text, faults) in [
            ("store/redis.rs", "use redis::Client;", 0),
            ("store/redis/script.rs", "redis::cmd(\"SET\")", 0),
            ("store/mod.rs", "redis::RedisStore::open()", 0),
            ("store/embedded.rs", "use redis::Client;", 1),
            ("server.rs", "pingora::server::Server::new()", 0),
            ("route.rs", "use pingora::prelude::Result;\nuse pingora_proxy::Session;", 2),
            ("route.rs", "// pingora::x\nlet x = my_pingora::y; crate::redis::z", 0),
            ("config/read.rs", "serde_yaml::from_str(text)", 0),
            ("cli/run.rs", "serde_yaml::from_str(text)", 1),
            ("server.rs", "use clap::Parser;", 1),
        ] {
            let found = foreign_types(&source(path, text));
            assert_eq!(found.len(), faults, "{path}: `{text}`: {found:?}");
        }
    }

    #[test]
    fn form() {
        let long = format!("//! Long.\n{}", "\n".repeat(super::LONGEST_FILE));
        for (path, text, faults) in [
            ("event.rs", "//! Events.\n", 0),
            ("event.rs", "use x;\n", 1),
            ("event.rs", "//!\n", 1),
            ("proxy/utils.rs", "//! Things.\n", 1),
            ("common/event.rs", "//! Things.\n", 1),
            ("event.rs", &*long, 1),
        ] {
            let found = faults_of_form(&source(path, text), super::LONGEST_FILE);
            assert_eq!(found.len(), faults, "{path}: {found:?}");
        }
    }
}
