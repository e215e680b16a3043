//! Every mistake of a configuration is named at once, with its path.

use crate::support::gateway::hookonce;

/// Runs `check` on this text.
fn check(text: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hookonce.yaml");
    std::fs::write(&file, text).expect("a file");
    let mut command = hookonce();
    command.arg("check").arg("--config").arg(file).env_remove("NOT_SET").env("IS_SET", "whsec_from_the_environment");
    let output = command.output().expect("the binary starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn one_run_names_them_all() {
    let (code, stdout, stderr) = check(
        r"
server:
  listen: nowhere
  admin: 127.0.0.1:70000
  threads: 0
  shutdown_grace: soon
  body_budget: 12 apples
  lisen: 127.0.0.1:1
  log: {level: loud, format: xml, deliveries: some}
  readiness: maybe
store:
  redis: {url: 'http://127.0.0.1:6379', prefix: '', persistence: perhaps, timeout: 0s}
  embedded: {path: ./hookonce.db}
routes:
  - name: Not Good
    path: webhooks
    provider: stripe
    secret: ${NOT_SET}
    upstream: http://127.0.0.1:3000/path
  - name: twice
    path: /same
    provider: stripe
    secret: ''
    upstream: ftp://127.0.0.1:3000
    window: 10s
    lease: 30s
  - name: twice
    path: /same
    provider: nobody
    upstream: http://127.0.0.1:3000
  - name: short-lease
    path: /short-lease
    provider: stripe
    secret: {file: /no/such/secret}
    lease: 0s
    upstream: {url: 'http://127.0.0.1:3000', timeout: never, conect_timeout: 1s}
  - name: unsafe
    path: /unsafe
    provider: stripe
    secret: x
    unknown_outcome: suppress
    store_down: forward
    mode: sometimes
    on_auth_failure: shrug
    max_body: 0
    duplicate_response: {status: 404}
    in_flight: {wait: -1s, then: panic}
    upstream: http://127.0.0.1:3000
  - name: keyless
    path: /keyless
    provider: generic
    upstream: http://127.0.0.1:3000
  - name: odd-key
    path: /odd-key
    provider: generic
    verify: {hmac: md5, signature: 'cookie:a'}
    secret: x
    key: ['$.[', 'header:', 'nonsense']
    upstream: http://127.0.0.1:3000
  - path: /nameless
    provider: none
",
    );
    assert_eq!(code, Some(78));
    assert_eq!(stdout, "");
    assert!(stderr.lines().all(|line| ["error: ", "warning: ", "hint: "].iter().any(|word| line.starts_with(word))));
    for path in [
        "server.listen",
        "server.admin",
        "server.threads",
        "server.shutdown_grace",
        "server.body_budget",
        "server.lisen",
        "server.log.level",
        "server.log.format",
        "server.log.deliveries",
        "server.readiness",
        "store",
        "store.redis.url",
        "store.redis.persistence",
        "store.redis.timeout",
        "routes[0].name",
        "routes[0].path",
        "routes[0].secret",
        "routes[0].upstream",
        "routes[1].secret",
        "routes[1].upstream",
        "routes[1].window",
        "routes[2].name",
        "routes[2].path",
        "routes[2].provider",
        "routes[3].secret",
        "routes[3].lease",
        "routes[3].upstream.timeout",
        "routes[3].upstream.conect_timeout",
        "routes[4].unknown_outcome|routes[4].store_down",
        "routes[4].mode",
        "routes[4].on_auth_failure",
        "routes[4].max_body",
        "routes[4].duplicate_response.status",
        "routes[4].in_flight.wait",
        "routes[4].in_flight.then",
        "routes[5].key",
        "routes[5].verify",
        "routes[6].verify",
        "routes[6].key[0]",
        "routes[6].key[1]",
        "routes[6].key[2]",
        "routes[7].name",
        "routes[7].upstream",
    ] {
        let is_named = path.split('|').any(|path| {
            stderr
                .lines()
                .filter_map(|line| line.strip_prefix("error: "))
                .any(|line| line.strip_prefix(path).is_some_and(|rest| rest.starts_with([':', '.', '['])))
        });
        assert!(is_named, "`{path}` is not named in:\n{stderr}");
    }
}

#[test]
fn what_is_no_configuration_at_all_is_one_error() {
    for text in ["", "a: [", "- a list", "just text", "routes: []"] {
        let (code, stdout, stderr) = check(text);
        assert_eq!((code, stdout.as_str()), (Some(78), ""), "`{text}`");
        assert!(stderr.starts_with("error: "), "`{text}`: {stderr}");
    }
}

#[test]
fn secrets_come_from_the_environment_and_are_never_shown() {
    let route = "routes:\n  - {name: a, path: /a, provider: stripe, secret: '${IS_SET}', upstream: 'http://h:1'}\n";
    let (code, stdout, stderr) = check(&format!("store: {{embedded: {{path: ./a.db}}}}\n{route}"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("ok: "));
    // The same with a mistake beside it.
    let (code, _, said) = check(&format!("store: {{embedded: {{path: ./a.db}}}}\n{route}nonsense: 1\n"));
    assert_eq!(code, Some(78));
    assert!(said.contains("nonsense"));
    assert!(![stdout, stderr, said].iter().any(|text| text.contains("whsec_from_the_environment")));
}
