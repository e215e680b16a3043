//! `routes[].upstream`: a URL, or a mapping with it.

use std::time::Duration;

use http::uri::Authority;
use url::{Host, Url};

use crate::config::document::Node;
use crate::config::schema::Upstream;
use crate::config::values;

/// Where a URL leads.
struct Target {
    tls: bool,
    host: String,
    port: u16,
}

pub(super) fn read(node: Option<Node<'_>>) -> Upstream {
    match node {
        Some(node) if node.is_mapping() => node.fields(|fields| {
            let target = fields.require("url").and_then(|node| node.read_text(target));
            let duration = |node: Node<'_>| node.read(values::duration(Duration::from_millis(1)));
            let defaults = with_defaults(target);
            Upstream {
                host_header: fields.take("host").and_then(|node| node.read_text(host_header)),
                connect_timeout: fields.or("connect_timeout", defaults.connect_timeout, duration),
                timeout: fields.or("timeout", defaults.timeout, duration),
                ..defaults
            }
        }),
        node => with_defaults(node.and_then(|node| node.read_text(target))),
    }
}

fn with_defaults(target: Option<Target>) -> Upstream {
    let Target { tls, host, port } = target.unwrap_or(Target { tls: false, host: String::new(), port: 0 });
    Upstream {
        tls,
        host,
        port,
        host_header: None,
        connect_timeout: Duration::from_secs(1),
        timeout: Duration::from_secs(30),
    }
}

fn target(text: &str) -> Result<Target, String> {
    let form = "such as `http://127.0.0.1:3000`";
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let tls = match scheme.as_deref() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(format!("must be an `http://` or `https://` URL, {form}")),
    };
    if text.contains(|character: char| character.is_whitespace() || character.is_control() || character == '\\') {
        return Err(format!("must be a URL without spaces and backslashes, {form}"));
    }
    let url = Url::parse(text).map_err(|error| format!("must be a URL, {form} ({error})"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must have no user and password: the headers are passed on as they were received".to_owned());
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("an upstream has no path of its own: the received path is kept".to_owned());
    }
    let host = match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => return Err(format!("must name a host, {form}")),
    };
    match url.port_or_known_default() {
        None | Some(0) => Err("must have a port that can be connected to".to_owned()),
        Some(port) => Ok(Target { tls, host, port }),
    }
}

fn host_header(text: &str) -> Result<String, String> {
    let valid = text.parse::<Authority>().is_ok_and(|authority| {
        let sound = authority.port().is_none() || authority.port_u16().is_some();
        !text.contains('@') && !authority.host().is_empty() && sound
    });
    if valid { Ok(text.to_owned()) } else { Err("must be a host, with its port where it has one".to_owned()) }
}
