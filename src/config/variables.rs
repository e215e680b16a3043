//! Variables of the environment in the texts of the file.
//!
//! `${NAME}` is the variable's value and must be set; `${NAME:-text}` is `text` where it is not set or empty, up to the
//! next `}`. `$${` is `${` itself. Every other `$` stands for itself, so that JSONPaths and passwords need no care.
//! Variables are put in after the YAML was parsed, once: a value can neither add YAML nor name another variable.

/// `text` with the variables in it replaced, or everything that is wrong with them.
pub(super) fn expand(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, Vec<String>> {
    let mut expanded = String::with_capacity(text.len());
    let mut problems = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            expanded.push_str(&rest[..start - 1]);
            expanded.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        expanded.push_str(&rest[..start]);
        let Some(length) = rest[start..].find('}') else {
            problems.push("a `${` has no `}` (write `$${` for `${` itself)".to_owned());
            rest = "";
            break;
        };
        match value(&rest[start + 2..start + length], environment) {
            Ok(value) => expanded.push_str(&value),
            Err(problem) => problems.push(problem),
        }
        rest = &rest[start + length + 1..];
    }
    expanded.push_str(rest);
    if problems.is_empty() { Ok(expanded) } else { Err(problems) }
}

fn value(reference: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_name(name) {
        return Err("a variable is written `${NAME}` or `${NAME:-default}`, its name in letters, digits and `_` \
                    (write `$${` for `${` itself)"
            .to_owned());
    }
    match (environment(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!("the environment variable `{name}` is not set")),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
