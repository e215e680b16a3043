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
mod schema;
mod validate;
mod values;
mod variables;

#[cfg(test)]
mod tests;

use std::path::Path;

use document::{Node, Report};
pub use problem::{Problem, Problems};
pub use schema::*;
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
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem::whole(format!("cannot read `{}`: {error}", path.display())))?;
    parse(&text, &|name| std::env::var(name).ok())
}

/// Reads `text`, with variables from `environment`.
pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, Problems> {
    let document: serde_yaml::Value =
        serde_yaml::from_str(text).map_err(|error| Problem::whole(format!("the file is not valid YAML: {error}")))?;
    if document.is_null() {
        return Err(Problem::whole("the file is empty: it needs at least `store` and `routes`".to_owned()).into());
    }
    let report = Report::new(environment);
    let config = read::config(&Node::root(&document, &report));
    report.conclude().map(|warnings| Loaded { config, warnings })
}
