//! Routes of a test's configuration.

use std::net::SocketAddr;

use super::provider::SECRET;

/// One entry of `routes`, as the lines of the file.
#[derive(Clone)]
pub struct Route {
    lines: Vec<String>,
    upstream: Vec<String>,
}

impl Route {
    pub fn new(name: &str, path: &str, provider: &str, upstream: SocketAddr) -> Self {
        Self {
            lines: vec![format!("name: {name}"), format!("path: {path}"), format!("provider: {provider}")],
            upstream: vec![format!("url: http://{upstream}"), "timeout: 10s".to_owned()],
        }
    }

    /// `/webhooks/stripe`
    pub fn stripe(upstream: SocketAddr) -> Self {
        Self::new("stripe", "/webhooks/stripe", "stripe", upstream).with(&format!("secret: {SECRET}"))
    }

    /// `/webhooks/generic`, keyed by `$.id`, without verification.
    pub fn generic(upstream: SocketAddr) -> Self {
        Self::new("generic", "/webhooks/generic", "generic", upstream).with("verify: off").with("key: ['$.id']")
    }

    /// `/*`, streamed through.
    pub fn passed(upstream: SocketAddr) -> Self {
        Self::new("passed", "/*", "none", upstream)
    }

    /// One more line, such as `lease: 2s`.
    pub fn with(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Another upstream than the one that listens.
    pub fn at(mut self, url: &str) -> Self {
        self.upstream[0] = format!("url: {url}");
        self
    }

    /// One more entry of `upstream`, such as `connect_timeout: 5s`.
    pub fn upstream(mut self, entry: &str) -> Self {
        self.upstream.push(entry.to_owned());
        self
    }

    /// How long the gateway waits for the handler's answer.
    pub fn timeout(mut self, timeout: &str) -> Self {
        self.upstream[1] = format!("timeout: {timeout}");
        self
    }

    pub fn entry(&self) -> String {
        let mut lines = self.lines.clone();
        lines.push(format!("upstream: {{{}}}", self.upstream.join(", ")));
        format!("  - {}\n", lines.join("\n    "))
    }
}
