//! `hookonce schema`: the JSON Schema of the configuration, for editors.

/// Kept equal to what is read by the tests of `config`.
const SCHEMA: &str = include_str!("../../conf/hookonce.schema.json");

pub fn run() {
    super::show(SCHEMA);
}
