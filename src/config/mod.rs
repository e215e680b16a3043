//! The configuration: one YAML file, read once, checked whole.
//!
//! [`schema`] is what a valid file means, in the program's own types. `read` turns YAML into it, `values` reads single
//! values (durations, sizes, secrets), and `validate` judges what a single value cannot show. A file with mistakes
//! gives every one of them at once, each with its path.

mod read;
mod schema;
mod validate;
mod values;

pub use schema::*;
pub use values::Secret;
