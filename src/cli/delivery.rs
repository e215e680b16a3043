//! What several commands are told about a delivery: its file, its headers, its route.

use std::io::Read as _;
use std::path::Path;

use hookonce::config::{Config, PathPattern, Route};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Failure, saved};

/// `Name: value` behind `--header`.
pub fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    saved::header(text.as_bytes()).ok_or_else(|| "must read `Name: value`".to_owned())
}

pub fn find_route<'a>(config: &'a Config, name: &str) -> Result<&'a Route, Failure> {
    config.routes.iter().find(|route| route.name == name).ok_or_else(|| {
        let names: Vec<_> = config.routes.iter().map(|route| format!("`{}`", route.name)).collect();
        Failure::new(format!("no route is called `{name}`")).hint(format!("the routes are {}", names.join(", ")))
    })
}

/// A file's content; `-` is stdin.
pub fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut content).map(drop)
    } else {
        std::fs::read(file).map(|bytes| content = bytes)
    };
    read.map_err(|error| Failure::new(format!("`{}` cannot be read: {error}", file.display())))?;
    Ok(content)
}

/// Where a bare body would have come in: some providers look at the path.
pub fn path_of(route: &Route) -> &str {
    match &route.path {
        PathPattern::Exact(path) | PathPattern::Prefix(path) if !path.is_empty() => path,
        PathPattern::Exact(_) | PathPattern::Prefix(_) => "/",
    }
}

/// The headers of a file, with those of the command line in the place of their namesakes.
pub fn with_given(mut headers: HeaderMap, given: &[(HeaderName, HeaderValue)]) -> HeaderMap {
    for (name, _) in given {
        headers.remove(name);
    }
    for (name, value) in given {
        headers.append(name.clone(), value.clone());
    }
    headers
}
