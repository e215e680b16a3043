//! What is wrong with a configuration, and where.

use std::fmt;

/// One thing that is wrong or unwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: `routes[2].window`. Empty where it is the file as a whole.
    pub path: String,
    /// What, and the way out.
    pub message: String,
}

impl Problem {
    /// A problem of the file as a whole.
    pub(super) fn whole(message: String) -> Self {
        Self { path: String::new(), message }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { out.write_str(&self.message) } else { write!(out, "{}: {}", self.path, self.message) }
    }
}

/// Everything that is wrong with one file, in the order of its sections; at least one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            problem.fmt(out)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
