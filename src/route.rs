//! Routes: which part of the configuration a request belongs to.
//!
//! A route that names the request's host is preferred to one that names none; then an exact path to a prefix, and a
//! longer prefix to a shorter one. Paths are compared as they are received, so everything that another server might
//! read as a different path is refused first: behind the gateway nobody may reach a handler by a spelling that no
//! route knows.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::config::{self, PathPattern, ProviderKind};
use crate::provider::{self, Provider};

/// One route, ready to take deliveries.
pub struct Route {
    /// Its configuration.
    pub config: config::Route,
    /// `None` for `provider: none`: requests are streamed through.
    pub provider: Option<Arc<dyn Provider>>,
}

impl Route {
    /// Compiles a route.
    #[must_use]
    pub fn new(config: config::Route) -> Self {
        let provider = provider::build(&config.provider, &config.namespace);
        Self { config, provider }
    }
}

/// A path that is not in normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path is not in normal form")]
pub struct NotNormal;

/// The index of the route that takes a request, if there is one. `host` is the `Host` header as received.
///
/// # Errors
///
/// [`NotNormal`] for a path that changes under normalisation: `//`, `/./`, `/../`, an encoded slash, backslash, dot or
/// other unreserved character, lower-case hexadecimal (RFC 3986, section 6.2.2), a broken percent-encoding, a backslash
/// or a control character.
pub fn find<'a>(
    routes: impl IntoIterator<Item = &'a config::Route>,
    host: Option<&str>,
    path: &str,
) -> Result<Option<usize>, NotNormal> {
    if !is_normal(path) {
        return Err(NotNormal);
    }
    let host = host.map(without_port);
    let candidates = routes.into_iter().enumerate().filter_map(|(index, route)| {
        let by_host = match (&route.host, host) {
            (None, _) => false,
            (Some(wanted), Some(host)) if wanted.eq_ignore_ascii_case(host) => true,
            (Some(_), _) => return None,
        };
        let length = match &route.path {
            PathPattern::Exact(exact) => (exact == path).then_some(usize::MAX),
            PathPattern::Prefix(prefix) => below(prefix, path).then_some(prefix.len()),
        }?;
        Some((by_host, length, Reverse(index)))
    });
    Ok(candidates.max().map(|(_, _, Reverse(index))| index))
}

/// The keyed route, if there is one, whose path `path` only spells in another way: with capitals, a `/` at the end or
/// `;` parameters; or whose path it is, under a host that the route does not name. Many handlers take such a request for
/// the same, so a route that streams everything through must not carry it around the route that verifies and
/// deduplicates.
pub fn spelled_otherwise<'a>(
    routes: impl IntoIterator<Item = &'a config::Route>,
    host: Option<&str>,
    path: &str,
) -> Option<&'a config::Route> {
    let host = host.map(without_port);
    let loosened = loose(path);
    routes.into_iter().filter(|route| route.provider.kind != ProviderKind::None).find(|route| {
        let here =
            route.host.as_deref().is_none_or(|wanted| host.is_some_and(|host| wanted.eq_ignore_ascii_case(host)));
        let (to_the_letter, loosely) = match &route.path {
            PathPattern::Exact(exact) => (exact == path, loose(exact) == loosened),
            PathPattern::Prefix(prefix) => {
                (below(prefix, path), !prefix.is_empty() && below(&loose(prefix), &loosened))
            }
        };
        // One that takes the path as it stands, for this host, has only given way to a route that is more exact.
        loosely && !(here && to_the_letter)
    })
}

fn loose(path: &str) -> String {
    let segments = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    let mut loose = segments.collect::<Vec<_>>().join("/").to_ascii_lowercase();
    while loose.ends_with('/') {
        loose.pop();
    }
    loose
}

/// Whether `path` is `prefix` or something below it: `/evo` takes `/evo` and `/evo/x`, but not `/evolution`.
fn below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn without_port(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    // A name that ends with a dot is the same name (RFC 1034, section 3.1).
    name.strip_suffix('.').unwrap_or(name)
}

fn is_normal(path: &str) -> bool {
    path.starts_with('/')
        && path.bytes().all(|byte| byte != b'\\' && byte > b' ' && byte != 0x7f)
        && !path.contains("//")
        && path.split('/').all(|segment| segment != "." && segment != "..")
        && has_needed_encodings_only(path)
}

fn has_needed_encodings_only(path: &str) -> bool {
    path.split('%').skip(1).all(|rest| {
        let digits = rest.get(..2).filter(|digits| !digits.bytes().any(|digit| digit.is_ascii_lowercase()));
        let Some(value) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return false;
        };
        !(value.is_ascii_alphanumeric() || b"-._~/\\".contains(&value))
    })
}

#[cfg(test)]
mod tests;
