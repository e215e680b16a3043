//! `server` and `store`.

use super::{config, each_gives_these_problems, file, lines, parse_text};
use crate::config::{LogDeliveries, Persistence, Store};

#[test]
fn listeners_need_an_address_each() {
    let address = "must be an address and a port, such as `0.0.0.0:8080` or `[::1]:8080`";
    for wrong in ["8080", "':8080'", "localhost:8080", "127.0.0.1", "127.0.0.1:99999", "'::1:8080'", "''"] {
        let problems = parse_text(&file("stripe", &format!("server.listen: {wrong}"))).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(vec![format!("server.listen: {address}")]), "for {wrong}");
    }
    let same: &[&str] = &["server.admin: must not be the address of `server.listen`"];
    each_gives_these_problems(&[
        ("stripe", "server.admin: 127.0.0.1:8080", same),
        ("stripe", "server.admin: 0.0.0.0:8080", same),
        ("stripe", "server.admin: '[::]:8080'", same),
        ("stripe", "server.listen: '[::]:9090'", same),
        ("stripe", "server.listen: 0.0.0.0:9090", same),
        ("stripe", "server.admin: 127.0.0.2:8080", &[]),
        ("stripe", "server.admin: '[::1]:8080'", &[]),
        ("stripe", "server.listen: 127.0.0.1:0\nserver.admin: 127.0.0.1:0", &[]),
    ]);
}

#[test]
fn there_is_exactly_one_store() {
    let url = "such as `redis://127.0.0.1:6379/0`";
    each_gives_these_problems(&[
        (
            "stripe",
            "store: {redis: {url: redis://x}, embedded: {path: x}}",
            &["store: must be one store, either `redis` or `embedded`"],
        ),
        ("stripe", "store: redis", &["store: must be a mapping of keys to values"]),
        ("stripe", "store: {embedded: {}}", &["store.embedded.path: is missing"]),
        ("stripe", "store: {embedded: {path: ''}}", &["store.embedded.path: must not be empty"]),
        ("stripe", "store: {redis: }", &["store.redis: has no value"]),
        ("stripe", "store: {redis: {}}", &["store.redis.url: is missing"]),
        (
            "stripe",
            "store: {redis: {url: redis://x, prefix: 'a b'}}",
            &["store.redis.prefix: must be made of letters, digits, `.`, `_` and `-`"],
        ),
        (
            "stripe",
            "store: {redis: {url: 'redis://:a@x', password: b}}",
            &["store.redis.password: must not be said twice: the URL has a password already"],
        ),
        ("stripe", "store: {redis: {url: redis://x, password: ''}}", &["store.redis.password: must not be empty"]),
        (
            "stripe",
            "store: {redis: {url: redis://0.0.0.0}}",
            &["store.redis.url: must name one host: every address is none to connect to"],
        ),
    ]);
    for (wrong, message) in [
        ("127.0.0.1:6379", format!("must be a URL, {url} (relative URL without a base)")),
        ("unix:///run/redis.sock", format!("must be a `redis://` or `rediss://` URL, {url}")),
        ("redis:///0", format!("must name a host, {url}")),
        ("redis://x:port", format!("must be a URL, {url} (invalid port number)")),
        ("redis://x/first", format!("must end with the number of a database or with none, {url}")),
    ] {
        let text = file("stripe", &format!("store: {{redis: {{url: '{wrong}'}}}}"));
        let problems = parse_text(&text).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(vec![format!("store.redis.url: {message}")]), "for {wrong}");
    }
}

#[test]
fn redis_is_read_as_it_is_said() {
    let said = "store: {redis: {url: 'rediss://user@x:1/2', password: p, prefix: shop, persistence: off, timeout: 1s}}";
    let Store::Redis(redis) = config("stripe", &format!("{said}\nlease: 2s")).store else { panic!("a Redis was said") };
    assert_eq!(redis.url.reveal(), "rediss://user@x:1/2");
    assert_eq!(redis.password.map(|password| password.reveal().to_owned()).as_deref(), Some("p"));
    assert_eq!((redis.prefix.as_str(), redis.persistence, redis.timeout.as_secs()), ("shop", Persistence::Off, 1));
}

#[test]
fn off_is_off_however_yaml_tools_write_it() {
    for off in ["off", "false", "'off'", "'false'"] {
        let changes = format!(
            "server.log: {{deliveries: {off}}}
             store: {{redis: {{url: redis://x, persistence: {off}}}}}
             verify: {off}"
        );
        let loaded = parse_text(&file("stripe", &changes)).expect(off);
        assert_eq!(loaded.config.server.log.deliveries, LogDeliveries::Off);
        let Store::Redis(redis) = &loaded.config.store else { panic!("a Redis was said") };
        assert_eq!(redis.persistence, Persistence::Off);
        assert!(lines(&loaded.warnings).iter().any(|line| line.starts_with("routes[0].verify: `off`")));
    }
}
