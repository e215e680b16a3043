//! The configuration: one YAML file, read once, checked whole.
//!
//! `schema` is what a valid file means, in the program's own types. `document` walks the YAML and remembers what is
//! wrong where, `variables` puts the environment in, `values` reads single values (durations, sizes, words), `read`
//! makes the sections of them, and `validate` judges what a single value cannot show. A file with mistakes gives every
//! one of them at once, each with its path.
//!
//! No problem and no warning quotes a value of the file or of the environment: any of them may be a secret that was
//! put into the wrong place. The one exception is the path of a secret's file.

mod document;
mod problem;
mod read;
mod restart;
mod schema;
mod sources;
mod validate;
mod values;
mod variables;

#[cfg(test)]
mod tests;

use std::path::Path;

use document::{Node, Report};
pub use problem::{Problem, Problems};
pub use schema::*;
pub use sources::Sources;
pub use values::Secret;

/// A valid configuration and what is unwise about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the file says.
    pub config: Config,
    /// What works, but seldom as one wants it.
    pub warnings: Vec<Problem>,
}

/// Reads the file at `path`, with the variables of the process's environment.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    load_watched(path).0
}

/// The same, and which files were read for it: when one of them changes, the configuration may have.
pub fn load_watched(path: &Path) -> (Result<Loaded, Problems>, Sources) {
    let sources = Sources::default();
    let loaded = match sources.read(path) {
        Ok(text) => parse_from(&text, &|name| std::env::var(name).ok(), &sources),
        Err(error) => Err(Problem::whole(format!("cannot read `{}`: {error}", path.display())).into()),
    };
    (loaded, sources)
}

/// Reads `text`, with variables from `environment`.
pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, Problems> {
    parse_from(text, environment, &Sources::default())
}

/// What is wrong with a configuration that was put together of two: the rules between the values of one file.
pub fn judge(config: &Config) -> Result<(), Problems> {
    let sources = Sources::default();
    let report = Report::new(&|_| None, &sources);
    validate::process(&report, config);
    (0..config.routes.len()).for_each(|index| validate::route(&report, config, index));
    report.conclude().map(drop)
}

fn parse_from(text: &str, environment: &dyn Fn(&str) -> Option<String>, sources: &Sources) -> Result<Loaded, Problems> {
    let document: serde_yaml::Value =
        serde_yaml::from_str(text).map_err(|error| Problem::whole(format!("the file is not valid YAML: {error}")))?;
    if document.is_null() {
        return Err(Problem::whole("the file is empty: it needs at least `store` and `routes`".to_owned()).into());
    }
    let report = Report::new(environment, sources);
    let config = read::config(&Node::root(&document, &report));
    report.conclude().map(|warnings| Loaded { config, warnings })
}
