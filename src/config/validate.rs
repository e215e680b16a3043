//! What a single value cannot show: rules between the values of a file.
//!
//! A rule speaks only where every value it looks at was read soundly, so that no mistake is reported twice and no
//! placeholder is judged. What cannot work is a problem and stands here; what is merely unwise is in `unwise`.

mod unwise;

use std::net::{IpAddr, SocketAddr};

use super::document::{Report, join};
use super::schema::{
    BatchMode, Config, Place, ProviderKind, Route, Server, Store, StoreDown, UnknownOutcome, Upstream, Verify,
};

/// The rules that concern the process as a whole.
pub(super) fn process(report: &Report<'_>, config: &Config) {
    let server = &config.server;
    let at = At { report, path: String::new() };
    if overlap(server.listen, server.admin) {
        at.refuse(&["server.admin", "server.listen"], "must not be the address of `server.listen`");
    }
    unwise::process(&at, config);
}

/// The rules of the route at `index`, against the process and the routes before it.
pub(super) fn route(report: &Report<'_>, config: &Config, index: usize) {
    let route = &config.routes[index];
    let at = At { report, path: format!("routes[{index}]") };
    unique(&at, &config.routes[..index], route);
    upstream(&at, &config.server, &route.upstream);
    if route.provider.kind == ProviderKind::None {
        return;
    }
    times(&at, &config.store, route);
    authenticity(&at, route);
    batches(&at, route);
    if route.provider.kind == ProviderKind::Generic && route.provider.key.is_none() {
        at.refuse(&["key", "provider"], "is missing: a generic route must say what identifies an event");
    }
    if route.unknown_outcome == UnknownOutcome::Suppress && route.store_down == StoreDown::Forward {
        at.refuse(
            &["unknown_outcome", "store_down"],
            "`suppress` cannot be kept together with `store_down: forward`, which sends without a claim",
        );
    }
    if route.max_body > config.server.body_budget && !report.is_faulty("server.body_budget") {
        at.refuse(&["max_body"], "must not be more than `server.body_budget`, which holds all bodies together");
    }
    unwise::route(&at, &config.routes[..index], route);
}

/// A place in the file whose values are judged.
struct At<'a> {
    report: &'a Report<'a>,
    path: String,
}

impl At<'_> {
    /// What is said at the first of `names`, unless one of them is wrong already.
    fn refuse(&self, names: &[&str], message: impl Into<String>) {
        if let Some(path) = self.sound(names) {
            self.report.problem(&path, message);
        }
    }

    fn warn(&self, names: &[&str], message: impl Into<String>) {
        if let Some(path) = self.sound(names) {
            self.report.warning(&path, message);
        }
    }

    fn sound(&self, names: &[&str]) -> Option<String> {
        let mut paths = names.iter().map(|name| join(&self.path, name));
        let first = paths.next()?;
        let is_sound = |path: &str| !self.report.is_faulty(path);
        (is_sound(&first) && paths.all(|path| is_sound(&path))).then_some(first)
    }
}

fn unique(at: &At<'_>, before: &[Route], route: &Route) {
    if let Some(other) = before.iter().position(|other| other.name == route.name) {
        at.refuse(&["name"], format!("is the name of `routes[{other}]` already"));
    }
    let same = |other: &Route| other.host == route.host && other.path == route.path;
    if let Some(other) = before.iter().position(same) {
        at.refuse(&["path", "host"], format!("is the path of `routes[{other}]` already, for the same host"));
    }
    // Under `suppress` a sending key is judged by its window and lease: other ones would take a living sender for dead.
    let judged_otherwise = |other: &Route| {
        let suppress = |route: &Route| route.unknown_outcome == UnknownOutcome::Suppress;
        let keyed = |route: &Route| route.provider.kind != ProviderKind::None;
        keyed(route)
            && keyed(other)
            && other.namespace == route.namespace
            && (suppress(route) || suppress(other))
            && (other.window, other.lease) != (route.window, route.lease)
    };
    if let Some(other) = before.iter().position(judged_otherwise) {
        at.refuse(
            &["namespace", "window", "lease", "name"],
            format!("is shared with `routes[{other}]`: under `suppress` both must have the same `window` and `lease`"),
        );
    }
}

fn upstream(at: &At<'_>, server: &Server, upstream: &Upstream) {
    let ip = match upstream.host.as_str() {
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        host => host.parse().ok(),
    };
    let Some(target) = ip.map(|ip| SocketAddr::new(ip, upstream.port)) else { return };
    let own = if target.ip().is_loopback() { overlap(target, server.listen) } else { target == server.listen };
    if own && !at.report.is_faulty("server.listen") {
        at.refuse(&["upstream"], "is `server.listen`: hookonce would send every delivery to itself");
    }
}

/// Whether two listeners cannot both have their address: an unspecified one takes the port on every address of its
/// family, and `[::]` on those of the other too.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let takes = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    // A port of 0 is a free one, chosen at start.
    one.port() == other.port()
        && one.port() != 0
        && (one.ip() == other.ip() || takes(one.ip(), other.ip()) || takes(other.ip(), one.ip()))
}

fn times(at: &At<'_>, store: &Store, route: &Route) {
    let lease = humantime::format_duration(route.lease);
    if route.window <= route.lease {
        at.refuse(&["window", "lease"], format!("must be longer than the lease ({lease})"));
    }
    if route.lease <= store.timeout() && !at.report.is_faulty("store") {
        let timeout = humantime::format_duration(store.timeout());
        at.refuse(&["lease"], format!("must be longer than the store's timeout ({timeout})"));
    }
}

fn authenticity(at: &At<'_>, route: &Route) {
    let kind = route.provider.kind;
    let has_preset = matches!(kind, ProviderKind::Stripe | ProviderKind::Hotmart | ProviderKind::Meta);
    let has_secret = !route.provider.secrets.is_empty();
    match &route.provider.verify {
        Verify::Off => {}
        Verify::Preset if !has_preset => at.refuse(
            &["verify", "provider"],
            format!("is missing: {} does not fix how a delivery is verified, so say it, or say `off`", kind.label()),
        ),
        Verify::Preset if !has_secret => at.refuse(
            &["secret", "verify", "provider"],
            format!("is missing: {} proves its deliveries with one (or say `verify: off`)", kind.label()),
        ),
        Verify::Preset => {}
        Verify::Token(_) | Verify::Hmac { .. } | Verify::Jwt { .. } => {
            if has_preset {
                let message = format!("is fixed for {}: it can only be left out, or be `off`", kind.label());
                at.refuse(&["verify", "provider"], message);
            }
            if !has_secret {
                at.refuse(&["secret", "verify"], "is missing: `verify` checks deliveries against it");
            }
        }
    }
}

fn batches(at: &At<'_>, route: &Route) {
    let kind = route.provider.kind;
    if route.provider.events.is_some() && kind != ProviderKind::Generic {
        at.refuse(&["events", "provider"], "belongs to `provider: generic`: other providers know their own");
    }
    if route.batch == BatchMode::Whole {
        return;
    }
    match kind {
        ProviderKind::Meta if route.provider.secrets.is_empty() => at.refuse(
            &["batch", "secret", "verify", "provider"],
            "needs `secret`, since every part is signed anew (or say `batch: whole`)",
        ),
        ProviderKind::Meta => {}
        ProviderKind::Generic if route.provider.events.is_some() => {
            if matches!(&route.provider.verify, Verify::Hmac { signature: Place::Query(_), .. }) {
                at.refuse(
                    &["batch", "verify"],
                    "cannot sign the parts anew, since the signature stands in the URL, which is kept (say `batch: whole`)",
                );
            }
        }
        ProviderKind::Generic => {
            at.refuse(&["batch", "provider", "events"], "needs `events`, which finds the elements of a delivery");
        }
        _ => at.refuse(
            &["batch", "provider"],
            format!("must be `whole`: a delivery of {} cannot be cut into its events", kind.label()),
        ),
    }
}
