//! Walking the YAML: every place knows its path, and what is wrong there is noted without stopping.

use std::cell::RefCell;

use serde_yaml::Value;

use super::variables;
use super::{Problem, Problems, Sources};

/// What was found on the walk so far.
pub(super) struct Report<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    pub(super) sources: &'a Sources,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
    /// Every key that was asked for, so that the schema can be held against it.
    #[cfg(test)]
    pub(super) asked: RefCell<std::collections::BTreeSet<String>>,
}

impl<'a> Report<'a> {
    pub(super) fn new(environment: &'a dyn Fn(&str) -> Option<String>, sources: &'a Sources) -> Self {
        Self {
            environment,
            sources,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            #[cfg(test)]
            asked: RefCell::default(),
        }
    }

    pub(super) fn problem(&self, path: &str, message: impl Into<String>) {
        self.problems.borrow_mut().push(Problem { path: path.to_owned(), message: message.into() });
    }

    pub(super) fn warning(&self, path: &str, message: impl Into<String>) {
        self.warnings.borrow_mut().push(Problem { path: path.to_owned(), message: message.into() });
    }

    /// Whether something is wrong at `path`, inside it or around it, so that what was read there says nothing.
    pub(super) fn is_faulty(&self, path: &str) -> bool {
        self.problems.borrow().iter().any(|problem| is_within(&problem.path, path) || is_within(path, &problem.path))
    }

    /// The warnings, or everything that is wrong.
    pub(super) fn conclude(self) -> Result<Vec<Problem>, Problems> {
        let problems = self.problems.into_inner();
        if problems.is_empty() { Ok(self.warnings.into_inner()) } else { Err(Problems(problems)) }
    }
}

fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || outer.is_empty() || rest.starts_with(['.', '[']))
}

/// The path of `name` inside `path`.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// One place in the file.
pub(super) struct Node<'a> {
    value: &'a Value,
    path: String,
    report: &'a Report<'a>,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value, report: &'a Report<'a>) -> Self {
        Self { value, path: String::new(), report }
    }

    pub(super) fn report(&self) -> &'a Report<'a> {
        self.report
    }

    pub(super) fn problem(&self, message: impl Into<String>) {
        self.report.problem(&self.path, message);
    }

    pub(super) fn is_mapping(&self) -> bool {
        self.value.is_mapping()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.is_sequence()
    }

    /// A single value as `parse` understands its text. Numbers and truth values come as they are written most
    /// plainly, so that a value is the same whether it stands in the file or in a variable.
    pub(super) fn read<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = match self.value {
            Value::Number(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::String(text) => self.expand(text)?,
            Value::Null => return self.fault("has no value"),
            Value::Sequence(_) | Value::Mapping(_) => return self.fault("must be a single value"),
            Value::Tagged(_) => return self.fault("a YAML tag has no meaning here"),
        };
        parse(&text).map_err(|message| self.problem(message)).ok()
    }

    /// Like [`read`](Self::read), of text only: YAML would already have changed what looks like a number (`007`).
    pub(super) fn read_text<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match self.value {
            Value::Number(_) | Value::Bool(_) => self.fault("must be text: put it in quotes"),
            _ => self.read(parse),
        }
    }

    /// The elements of a list.
    pub(super) fn items(&self) -> Vec<Node<'a>> {
        let Value::Sequence(items) = self.value else {
            self.problem(if self.value.is_null() { "has no value" } else { "must be a list" });
            return Vec::new();
        };
        let place = |(index, value)| Node { value, path: format!("{}[{index}]", self.path), report: self.report };
        items.iter().enumerate().map(place).collect()
    }

    /// The keys of a mapping, as `read` asks for them; what it did not ask for is unknown.
    pub(super) fn fields<R>(&self, read: impl FnOnce(&mut Fields<'a>) -> R) -> R {
        let mut fields = Fields::empty(self.path.clone(), self.report);
        match self.value {
            Value::Mapping(mapping) => {
                for (key, value) in mapping {
                    match key.as_str() {
                        Some(name) => fields.entries.push((name, value)),
                        None => self.problem("a key must be text: put it in quotes"),
                    }
                }
            }
            Value::Null => fields.refuse("has no value"),
            _ => fields.refuse("must be a mapping of keys to values"),
        }
        let result = read(&mut fields);
        fields.report_unknown();
        result
    }

    fn fault<T>(&self, message: &str) -> Option<T> {
        self.problem(message);
        None
    }

    fn expand(&self, text: &str) -> Option<String> {
        match variables::expand(text, self.report.environment) {
            Ok(text) => Some(text),
            Err(problems) => {
                problems.into_iter().for_each(|problem| self.problem(problem));
                None
            }
        }
    }
}

/// The keys of one mapping.
pub(super) struct Fields<'a> {
    entries: Vec<(&'a str, &'a Value)>,
    asked: Vec<&'static str>,
    path: String,
    report: &'a Report<'a>,
    /// The place is no mapping, which is said already: nothing is missing in it.
    refused: bool,
}

impl<'a> Fields<'a> {
    fn empty(path: String, report: &'a Report<'a>) -> Self {
        Self { entries: Vec::new(), asked: Vec::new(), path, report, refused: false }
    }

    pub(super) fn problem(&self, message: impl Into<String>) {
        self.report.problem(&self.path, message);
    }

    pub(super) fn problem_at(&self, name: &str, message: impl Into<String>) {
        self.report.problem(&join(&self.path, name), message);
    }

    /// The names of the keys that are there and were asked for.
    pub(super) fn taken(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(|(name, _)| *name).filter(|name| self.asked.contains(name))
    }

    /// The value of `name`, if it is there.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Node<'a>> {
        self.asked.push(name);
        #[cfg(test)]
        self.report.asked.borrow_mut().insert(join(&self.path, name));
        let (_, value) = self.entries.iter().find(|(key, _)| *key == name)?;
        Some(Node { value, path: join(&self.path, name), report: self.report })
    }

    /// The value of `name`, which must be there.
    pub(super) fn require(&mut self, name: &'static str) -> Option<Node<'a>> {
        let node = self.take(name);
        if node.is_none() && !self.refused {
            self.problem_at(name, "is missing");
        }
        node
    }

    /// What `read` makes of `name`; `default` where it is absent, and also where it is wrong, so that the walk goes on.
    pub(super) fn or<T>(&mut self, name: &'static str, default: T, read: impl FnOnce(Node<'a>) -> Option<T>) -> T {
        self.take(name).and_then(read).unwrap_or(default)
    }

    /// The section `name`, as if it were there and empty where it is absent.
    pub(super) fn section<R>(&mut self, name: &'static str, read: impl FnOnce(&mut Fields<'a>) -> R) -> R {
        match self.take(name) {
            Some(node) => node.fields(read),
            None => read(&mut Fields::empty(join(&self.path, name), self.report)),
        }
    }

    fn refuse(&mut self, message: &str) {
        self.refused = true;
        self.problem(message);
    }

    fn report_unknown(&self) {
        for (name, _) in self.entries.iter().filter(|(name, _)| !self.asked.contains(name)) {
            let message = match nearest(name, &self.asked) {
                Some(known) => format!("unknown key, did you mean `{known}`?"),
                None => "unknown key".to_owned(),
            };
            self.problem_at(name, message);
        }
    }
}

/// The name that was probably meant: few slips away for its length, in any case and with either dash.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name, known), *known))
        .filter(|(slips, known)| *slips <= (known.len() / 3).max(1))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, known)| known)
}
