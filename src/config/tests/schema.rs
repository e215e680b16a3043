//! The JSON Schema in `conf/` knows what the reader knows: the same keys, the same words.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::config::document::{Node, Report};
use crate::config::{Sources, parse, read};

/// Files that hold, between them, every section there is.
const WHOLE: [&str; 2] = [
    "
server:
  log: {level: info}
store:
  redis: {url: {file: /dev/null}}
routes:
  - name: a
    path: /a
    provider: generic
    key: [$.id]
    verify: {hmac: sha256, signature: header:X-Signature, encoding: hex}
    secret: s
    upstream: {url: http://127.0.0.1:3000}
    in_flight: {wait: 1s}
    duplicate_response: {status: 200}
",
    "
store:
  embedded: {path: ./a.db}
routes:
  - name: a
    path: /a
    provider: evolution
    verify: {jwt: HS256}
    secret: s
    upstream: http://127.0.0.1:3000
",
];

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../conf/hookonce.schema.json")).expect("the schema is JSON")
}

/// Where a `$ref` leads; else the schema itself.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.strip_prefix('#').expect("a local reference")).expect("it is there"),
        None => schema,
    }
}

/// The schema of every key, by its path as problems name it, with `[0]` for the elements of a list.
fn places<'a>(schema: &'a Value, root: &'a Value, path: &str, found: &mut BTreeMap<String, &'a Value>) {
    let schema = resolve(schema, root);
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.insert(path.clone(), of);
        places(of, root, &path, found);
    }
    if let Some(of) = schema.get("items") {
        places(of, root, &format!("{path}[0]"), found);
    }
    for one in schema["anyOf"].as_array().into_iter().flatten() {
        places(one, root, path, found);
    }
}

/// The words that a schema takes; `false` is `off`.
fn words(schema: &Value, root: &Value) -> BTreeSet<String> {
    let schema = resolve(schema, root);
    let own = schema["enum"].as_array().into_iter().flatten();
    let own = own.map(|word| word.as_str().unwrap_or("off").to_owned());
    let others = schema["anyOf"].as_array().into_iter().flatten().flat_map(|one| words(one, root));
    own.chain(others).collect()
}

/// What is wrong with `value`; of JSON Schema, what ours uses.
fn faults(schema: &Value, root: &Value, value: &Value, path: &str) -> Vec<String> {
    let schema = resolve(schema, root);
    let mut faults = Vec::new();
    let mut fault = |what: &str| faults.push(format!("{path}: {what}"));
    for (keyword, of) in schema.as_object().expect("a schema is an object") {
        let number = || of.as_f64().expect("a number");
        let has = |kind: &Value| match kind.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            other => panic!("a type that no test knows: {other:?}"),
        };
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "properties" | "items" => {}
            "type" if of.is_array() && of.as_array().into_iter().flatten().any(has) => {}
            "type" if has(of) => {}
            "type" => fault("is of another type"),
            "enum" if of.as_array().expect("a list").contains(value) => {}
            "enum" => fault("is none of the words"),
            "pattern" => {
                assert_eq!(of, r"\$\{", "a pattern that no test knows");
                if !value.as_str().is_some_and(|text| text.contains("${")) {
                    fault("is no variable");
                }
            }
            "minimum" if value.as_f64().is_none_or(|value| value >= number()) => {}
            "maximum" if value.as_f64().is_none_or(|value| value <= number()) => {}
            "minItems" if value.as_array().is_none_or(|items| items.len() as f64 >= number()) => {}
            "minProperties" if value.as_object().is_none_or(|members| members.len() as f64 >= number()) => {}
            "maxProperties" if value.as_object().is_none_or(|members| members.len() as f64 <= number()) => {}
            "minimum" | "maximum" | "minItems" | "minProperties" | "maxProperties" => fault("is out of bounds"),
            "required" => {
                for name in of.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.is_object() && value.get(name).is_none() {
                        fault(&format!("has no `{name}`"));
                    }
                }
            }
            "additionalProperties" => {
                for name in value.as_object().into_iter().flat_map(|members| members.keys()) {
                    if schema["properties"].get(name).is_none() {
                        fault(&format!("has a `{name}`"));
                    }
                }
            }
            "anyOf" => {
                if !of.as_array().into_iter().flatten().any(|one| self::faults(one, root, value, path).is_empty()) {
                    fault("fits nothing that it can be");
                }
            }
            other => panic!("a keyword that no test knows: `{other}`"),
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        if let Some(of) = schema["properties"].get(name) {
            faults.extend(self::faults(of, root, member, &format!("{path}.{name}")));
        }
    }
    if let (Some(of), Some(elements)) = (schema.get("items"), value.as_array()) {
        faults.extend(elements.iter().flat_map(|element| self::faults(of, root, element, &format!("{path}[]"))));
    }
    faults
}

fn faults_of(yaml: &str) -> Vec<String> {
    let schema = schema();
    faults(&schema, &schema, &serde_yaml::from_str(yaml).expect("YAML"), "")
}

#[test]
fn it_has_every_key_that_is_read_and_no_other() {
    let schema = schema();
    let mut known = BTreeMap::new();
    places(&schema, &schema, "", &mut known);
    let mut read = BTreeSet::new();
    for text in WHOLE {
        let document = serde_yaml::from_str(text).expect("YAML");
        let sources = Sources::default();
        let report = Report::new(&|_| None, &sources);
        read::config(&Node::root(&document, &report));
        read.extend(report.asked.take());
    }
    // Every secret can stand in a file, which is written in one place of the schema and read in one place.
    let is_file = |path: &&String| !path.ends_with(".file");
    let known: BTreeSet<_> = known.keys().filter(is_file).cloned().collect();
    let read: BTreeSet<_> = read.iter().filter(is_file).cloned().collect();
    assert!(read.len() > 40, "{read:?}");
    assert_eq!(known, read);
}

#[test]
fn it_has_every_word_that_is_read_and_no_other() {
    let schema = schema();
    let mut known = BTreeMap::new();
    places(&schema, &schema, "", &mut known);
    let choices = known.iter().map(|(path, of)| (path, words(of, &schema)));
    let choices: Vec<_> = choices.filter(|(path, words)| !words.is_empty() && *path != "routes[0].verify").collect();
    assert!(choices.len() >= 16, "{choices:?}");
    for (path, words) in choices {
        let said = WHOLE.iter().find_map(|text| {
            let mut document: Value = serde_yaml::from_str(text).expect("YAML");
            // JSON is YAML too.
            *place(&mut document, path)? = "nonsense".into();
            let problems = parse(&document.to_string(), &|_| None).expect_err("nonsense was taken").0;
            problems.into_iter().find(|problem| problem.path == *path)
        });
        let said = said.unwrap_or_else(|| panic!("nonsense was taken at {path}")).message;
        let taken: BTreeSet<_> = said.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(words, taken, "{path}: {said}");
    }
}

/// The place at a path, where its section is there.
fn place<'a>(document: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let (section, name) = path.rsplit_once('.')?;
    let pointer = format!("/{}", section.replace("[0]", "/0").replace('.', "/"));
    let section = document.pointer_mut(&pointer)?.as_object_mut()?;
    Some(section.entry(name).or_insert(Value::Null))
}

#[test]
fn the_files_in_conf_name_it_and_fit_it() {
    let directory = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conf");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        assert!(text.starts_with("# yaml-language-server: $schema=./hookonce.schema.json\n"), "{}", path.display());
        assert_eq!(faults_of(&text), [""; 0], "{}", path.display());
        count += 1;
    }
    assert!(count >= 3);
    WHOLE.iter().for_each(|text| assert_eq!(faults_of(text), [""; 0]));
}

#[test]
fn it_refuses_what_is_refused() {
    for (right, wrong) in [
        ("lease: 30s", "leese: 30s"),
        ("provider: generic", "provider: strip"),
        ("level: info", "level: loud"),
        ("{url: {file: /dev/null}}", "{url: {file: /dev/null}, db: 1}"),
        ("name: a", "nome: a"),
        ("{status: 200}", "{status: 404}"),
        ("key: [$.id]", "key: $.id"),
    ] {
        let text = WHOLE[0].replace("    path: /a", "    path: /a\n    lease: 30s");
        assert_eq!(faults_of(&text), [""; 0]);
        assert!(text.contains(right), "{right}");
        assert_ne!(faults_of(&text.replace(right, wrong)), [""; 0], "{wrong}");
    }
}
