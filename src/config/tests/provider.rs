//! `secret`, `verify`, `key`, `events` and `batch`.

use std::time::Duration;

use super::{config, each_gives_these_problems, file, parse_text};
use crate::config::{Encoding, HmacAlgorithm, KeySource, Place, Verify};

#[test]
fn who_signs_needs_a_secret_and_who_does_not_must_say_so() {
    each_gives_these_problems(&[
        (
            "stripe",
            "!secret",
            &["routes[0].secret: is missing: stripe proves its deliveries with one (or say `verify: off`)"],
        ),
        (
            "hotmart",
            "!secret",
            &["routes[0].secret: is missing: hotmart proves its deliveries with one (or say `verify: off`)"],
        ),
        (
            "meta",
            "!secret\nbatch: whole",
            &["routes[0].secret: is missing: meta proves its deliveries with one (or say `verify: off`)"],
        ),
        (
            "generic",
            "!verify",
            &["routes[0].verify: is missing: generic does not fix how a delivery is verified, so say it, or say `off`"],
        ),
        (
            "evolution",
            "!verify\n!secret",
            &[
                "routes[0].verify: is missing: evolution does not fix how a delivery is verified, so say it, or say `off`",
            ],
        ),
        (
            "marcha",
            "!verify",
            &["routes[0].verify: is missing: marcha does not fix how a delivery is verified, so say it, or say `off`"],
        ),
        ("generic", "!secret", &["routes[0].secret: is missing: `verify` checks deliveries against it"]),
        (
            "marcha",
            "verify: {jwt: HS256}\n!secret",
            &["routes[0].secret: is missing: `verify` checks deliveries against it"],
        ),
        (
            "stripe",
            "verify: {token: header:X}",
            &["routes[0].verify: is fixed for stripe: it can only be left out, or be `off`"],
        ),
        ("stripe", "verify: off\n!secret", &[]),
        ("evolution", "verify: off\n!secret", &[]),
        // A secret that was said and cannot be read is not missing as well.
        ("stripe", "secret: ''", &["routes[0].secret: must not be empty"]),
        ("stripe", "secret: []", &["routes[0].secret: must hold at least one secret"]),
        (
            "stripe",
            "secret: [a, '', 3]",
            &["routes[0].secret[1]: must not be empty", "routes[0].secret[2]: must be text: put it in quotes"],
        ),
    ]);
}

#[test]
fn secrets_come_from_texts_files_and_lists() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (name, content) in [("one", "s1\n"), ("two", "s2\r\n"), ("spaces", " s 3 \n\n"), ("empty", "\n")] {
        std::fs::write(path(name), content).expect("a file");
    }
    std::fs::write(path("binary"), [0xff, 0xfe]).expect("a file");
    let said =
        format!("secret: [s0, {{file: {}}}, {{file: {}}}, {{file: {}}}]", path("one"), path("two"), path("spaces"));
    let route = config("stripe", &said).routes.remove(0);
    let revealed: Vec<&str> = route.provider.secrets.iter().map(|secret| secret.reveal()).collect();
    assert_eq!(revealed, ["s0", "s1", "s2", " s 3 \n"]);
    for (name, message) in [("empty", "is empty"), ("missing", "No such file"), ("binary", "valid UTF-8")] {
        let problems = parse_text(&file("stripe", &format!("secret: {{file: {}}}", path(name))));
        let problems = problems.map(|loaded| loaded.warnings).expect_err(name);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("routes[0].secret.file: "), "{}", problems[0]);
        assert!(problems[0].contains(&path(name)) && problems[0].contains(message), "{}", problems[0]);
    }
}

#[test]
fn verify_has_four_forms() {
    let verify = |said: &str| config("generic", &format!("verify: {said}")).routes.remove(0).provider.verify;
    assert_eq!(verify("off"), Verify::Off);
    assert_eq!(verify("{token: header:X-Token}"), Verify::Token(Place::Header("X-Token".to_owned())));
    assert_eq!(verify("{token: query:token}"), Verify::Token(Place::Query("token".to_owned())));
    assert_eq!(verify("{jwt: HS256}"), Verify::Jwt { leeway: Duration::from_secs(1800) });
    assert_eq!(verify("{jwt: HS256, leeway: 0s}"), Verify::Jwt { leeway: Duration::ZERO });
    let signature = || Place::Header("X-S".to_owned());
    assert_eq!(
        verify("{hmac: sha256, signature: header:X-S}"),
        Verify::Hmac {
            algorithm: HmacAlgorithm::Sha256,
            signature: signature(),
            encoding: Encoding::Hex,
            prefix: String::new(),
        }
    );
    assert_eq!(
        verify("{hmac: sha1, signature: header:X-S, encoding: base64, prefix: 'sha1='}"),
        Verify::Hmac {
            algorithm: HmacAlgorithm::Sha1,
            signature: signature(),
            encoding: Encoding::Base64,
            prefix: "sha1=".to_owned(),
        }
    );
    let forms: &[&str] = &["routes[0].verify: must be `off`, `{token: …}`, `{hmac: …}` or `{jwt: HS256}`"];
    each_gives_these_problems(&[
        ("generic", "verify: on", forms),
        ("generic", "verify: true", forms),
        ("generic", "verify: {}", forms),
        ("generic", "verify: {token: header:X, jwt: HS256}", forms),
        ("generic", "verify: {token: X-Token}", &["routes[0].verify.token: must be `header:Name` or `query:name`"]),
        (
            "generic",
            "verify: {token: 'header:X Token'}",
            &["routes[0].verify.token: must be `header:Name` or `query:name`"],
        ),
        ("generic", "verify: {token: 'query:'}", &["routes[0].verify.token: must be `header:Name` or `query:name`"]),
        (
            "generic",
            "verify: {hmac: md5, encoding: base32}",
            &[
                "routes[0].verify.hmac: must be `sha1` or `sha256`",
                "routes[0].verify.signature: is missing",
                "routes[0].verify.encoding: must be `hex` or `base64`",
            ],
        ),
        (
            "generic",
            "verify: {jwt: RS256, leeway: 30}",
            &[
                "routes[0].verify.jwt: must be `HS256`",
                "routes[0].verify.leeway: needs a unit, such as `500ms`, `30s` or `7d`",
            ],
        ),
    ]);
}

#[test]
fn key_entries_say_where_a_part_comes_from() {
    let said = "[\"$.data['id']\", '@.n?', header:X-Shop, 'query:shop?', \"'order'\"]";
    let route = config("generic", &format!("events: '$.items[*]'\nkey: {said}")).routes.remove(0);
    let parts: Vec<_> = route.provider.key.into_iter().flatten().collect();
    let read: Vec<_> = parts.iter().map(|part| (&*part.written, part.source.clone(), part.optional)).collect();
    assert_eq!(
        read,
        [
            ("$.data['id']", KeySource::Body("$.data['id']".to_owned()), false),
            ("@.n", KeySource::Item("$.n".to_owned()), true),
            ("header:X-Shop", KeySource::Header("X-Shop".to_owned()), false),
            ("query:shop", KeySource::Query("shop".to_owned()), true),
            ("'order'", KeySource::Literal("order".to_owned()), false),
        ]
    );
    assert_eq!(route.provider.events.as_deref(), Some("$.items[*]"));
}

#[test]
fn keys_that_identify_nothing_are_refused() {
    let forms = "must be a JSONPath (`$.id`), `header:Name`, `query:name` or a literal in quotes of its own \
                 (`\"'word'\"`), with a `?` at its end where it may be absent";
    let literal = "a literal must be a word in single quotes, and cannot be absent";
    for (entry, message) in [
        ("id", forms),
        ("order", forms),
        ("'header:'", forms),
        ("body:id", forms),
        ("''", forms),
        ("'?'", forms),
        ("\"''\"", literal),
        ("\"'a'?\"", literal),
        ("\"'a'b'\"", literal),
        ("'@.id'", "`@` is the element that `events` finds: say `events`, or begin with `$`"),
        ("$.a b", "must be a JSONPath as RFC 9535 has it, such as `$.id` (wrong from character 4 on)"),
        ("'$['", "must be a JSONPath as RFC 9535 has it, such as `$.id` (wrong from character 2 on)"),
        ("$id", "must be a JSONPath as RFC 9535 has it, such as `$.id` (wrong from character 2 on)"),
        ("3", "must be text: put it in quotes"),
    ] {
        let problems = parse_text(&file("generic", &format!("key: [$.ok, {entry}]"))).map(|loaded| loaded.warnings);
        assert_eq!(problems, Err(vec![format!("routes[0].key[1]: {message}")]), "for {entry}");
    }
    each_gives_these_problems(&[
        ("generic", "!key", &["routes[0].key: is missing: a generic route must say what identifies an event"]),
        (
            "generic",
            "key: []",
            &[
                "routes[0].key: must hold something of the delivery: with literals alone, every event would be the same one",
            ],
        ),
        (
            "stripe",
            "key: [\"'a'\"]",
            &[
                "routes[0].key: must hold something of the delivery: with literals alone, every event would be the same one",
            ],
        ),
        (
            "generic",
            "events: '$.items[*]'",
            &[
                "routes[0].key: must look into the element (`@.id`): without that, all events of a delivery would be one",
            ],
        ),
        (
            "generic",
            "events: 'items'\nkey: ['@.id']",
            &["routes[0].events: must be a JSONPath as RFC 9535 has it, such as `$.id` (wrong from character 1 on)"],
        ),
        ("hotmart", "key: [$.data.purchase.transaction, $.event]", &[]),
    ]);
}

#[test]
fn only_what_can_be_cut_is_cut() {
    each_gives_these_problems(&[
        (
            "stripe",
            "batch: split",
            &["routes[0].batch: must be `whole`: a delivery of stripe cannot be cut into its events"],
        ),
        (
            "hotmart",
            "batch: filter",
            &["routes[0].batch: must be `whole`: a delivery of hotmart cannot be cut into its events"],
        ),
        (
            "evolution",
            "batch: split",
            &["routes[0].batch: must be `whole`: a delivery of evolution cannot be cut into its events"],
        ),
        (
            "marcha",
            "batch: split",
            &["routes[0].batch: must be `whole`: a delivery of marcha cannot be cut into its events"],
        ),
        ("generic", "batch: split", &["routes[0].batch: needs `events`, which finds the elements of a delivery"]),
        ("generic", "batch: split\nevents: $.a[*]\nkey: ['@.id']", &[]),
        (
            "stripe",
            "events: $.a[*]",
            &["routes[0].events: belongs to `provider: generic`: other providers know their own"],
        ),
        (
            "meta",
            "verify: off\n!secret",
            &["routes[0].batch: needs `secret`, since every part is signed anew (or say `batch: whole`)"],
        ),
        (
            "meta",
            "verify: off\nbatch: filter\n!secret",
            &["routes[0].batch: needs `secret`, since every part is signed anew (or say `batch: whole`)"],
        ),
        ("meta", "verify: off\nbatch: whole\n!secret", &[]),
        ("meta", "verify: off", &[]),
        ("meta", "batch: filter", &[]),
        (
            "meta",
            "!secret",
            &["routes[0].secret: is missing: meta proves its deliveries with one (or say `verify: off`)"],
        ),
    ]);
}

#[test]
fn a_signature_in_the_url_cannot_be_made_anew() {
    each_gives_these_problems(&[(
        "generic",
        "events: $.items[*]\nkey: ['@.id']\nbatch: split\nsecret: s\nverify: {hmac: sha256, signature: 'query:sig'}",
        &[
            "routes[0].batch: cannot sign the parts anew, since the signature stands in the URL, which is kept (say `batch: \
           whole`)",
        ],
    )]);
}
