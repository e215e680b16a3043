//! Stripe: its signature over the raw bytes, and the events of both its APIs.

use super::*;

const SECRET: &str = "whsec_test_secret";
const VECTOR_BODY: &str = r#"{"id":"evt_test_webhook","object":"event"}"#;
const VECTOR_TIME: u64 = 1_700_000_000;
const VECTOR: &str = "d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990";

fn stripe(secrets: &[&str]) -> Arc<dyn Provider> {
    let secrets = secrets.iter().map(|secret| Secret::new(*secret)).collect();
    build(&config::Provider { secrets, ..config(ProviderKind::Stripe) })
}

fn signed(header: &str) -> Sent {
    Sent::body(VECTOR_BODY).header("Stripe-Signature", header)
}

#[test]
fn each_event_is_keyed_by_its_id() {
    let provider = plain(ProviderKind::Stripe);
    for (fixture, expected) in [
        ("snapshot", one("checkout.session.completed", "stripe:evt_1Qf7wN2kTestAaaa0001")),
        ("snapshot_same_object", one("checkout.session.completed", "stripe:evt_1Qf7wN2kTestAaaa0002")),
        ("thin", one("v1.billing.meter.error_report_triggered", "stripe:evt_test_65ThinBbbb0001")),
    ] {
        assert_eq!(Sent::fixture(&format!("stripe/{fixture}.json")).found(&*provider), expected, "{fixture}");
    }
    let without_id = Sent::body(r#"{"object":"event","type":"ping"}"#);
    assert_eq!(without_id.found(&*provider), unkeyed("ping", "no usable value at `$.id`"));
}

#[test]
fn another_attempt_has_the_same_key() {
    let provider = plain(ProviderKind::Stripe);
    let first = Sent::fixture("stripe/snapshot.json").header("stripe-signature", "t=1,v1=aa");
    let text = String::from_utf8(first.body.to_vec()).unwrap();
    let later = text.replace("\"pending_webhooks\": 2", "\"pending_webhooks\":1");
    assert_ne!(text, later);
    let later = Sent::body(later).header("stripe-signature", "t=2,v1=bb");
    assert_eq!(first.key(&*provider), later.key(&*provider));
}

#[test]
fn a_header_verifies_or_fails_for_the_right_reason() {
    let provider = stripe(&["whsec_old", SECRET]);
    let wrong = "0".repeat(64);
    for (header, expected) in [
        (format!("t={VECTOR_TIME},v1={VECTOR}"), Ok(Verified::BySecret(1))),
        (format!("t={VECTOR_TIME}, v0={wrong}, v1={wrong}, v1={VECTOR}"), Ok(Verified::BySecret(1))),
        (format!("v1={VECTOR},t={VECTOR_TIME}"), Ok(Verified::BySecret(1))),
        (format!("t={VECTOR_TIME},v1={wrong}"), Err(AuthFailure::Mismatch)),
        (format!("t={VECTOR_TIME},v1="), Err(AuthFailure::Mismatch)),
        (format!("t={VECTOR_TIME},v1={}", &VECTOR[..62]), Err(AuthFailure::Mismatch)),
        (format!("t={},v1={VECTOR}", VECTOR_TIME + 1), Err(AuthFailure::Mismatch)),
        (format!("t=0{VECTOR_TIME},v1={VECTOR}"), Err(AuthFailure::Mismatch)),
        (format!("t={VECTOR_TIME},v0={VECTOR}"), Err(AuthFailure::Malformed)),
        (format!("t={VECTOR_TIME},t={VECTOR_TIME},v1={VECTOR}"), Err(AuthFailure::Malformed)),
        (format!("v1={VECTOR}"), Err(AuthFailure::Malformed)),
        (format!("t=,v1={VECTOR}"), Err(AuthFailure::Malformed)),
        (format!("t=+{VECTOR_TIME},v1={VECTOR}"), Err(AuthFailure::Malformed)),
        (format!("t=-1,v1={VECTOR}"), Err(AuthFailure::Malformed)),
        (format!("t=99999999999999999999999,v1={VECTOR}"), Err(AuthFailure::Malformed)),
        ("nonsense".to_owned(), Err(AuthFailure::Malformed)),
        (String::new(), Err(AuthFailure::Malformed)),
    ] {
        assert_eq!(signed(&header).verify_at(&*provider, VECTOR_TIME), expected, "{header}");
    }
    let header = format!("t={VECTOR_TIME},v1={VECTOR}");
    assert_eq!(Sent::body(VECTOR_BODY).verify_at(&*provider, VECTOR_TIME), Err(AuthFailure::Missing));
    let twice = signed(&header).header("Stripe-Signature", &header);
    assert_eq!(twice.verify_at(&*provider, VECTOR_TIME), Err(AuthFailure::Missing), "two headers");
    let other_bytes = Sent { body: format!("{VECTOR_BODY} ").into(), ..signed(&header) };
    assert_eq!(other_bytes.verify_at(&*provider, VECTOR_TIME), Err(AuthFailure::Mismatch), "one byte more");
    assert_eq!(signed(&header).verify_at(&*stripe(&["test_secret"]), VECTOR_TIME), Err(AuthFailure::Mismatch));
}

#[test]
fn only_old_signatures_are_stale_and_only_true_ones() {
    let provider = stripe(&[SECRET]);
    let sent = signed(&format!("t={VECTOR_TIME},v1={VECTOR}"));
    for (now, expected) in [
        (VECTOR_TIME - 86_400, Ok(Verified::BySecret(0))),
        (VECTOR_TIME, Ok(Verified::BySecret(0))),
        (VECTOR_TIME + 300, Ok(Verified::BySecret(0))),
        (VECTOR_TIME + 301, Err(AuthFailure::Stale)),
    ] {
        assert_eq!(sent.verify_at(&*provider, now), expected, "{now}");
    }
    let forged = signed(&format!("t={VECTOR_TIME},v1={}", "0".repeat(64)));
    assert_eq!(forged.verify_at(&*provider, VECTOR_TIME + 301), Err(AuthFailure::Mismatch));
}

#[test]
fn a_renewed_signature_verifies_for_the_new_body() {
    let provider = stripe(&["whsec_old", SECRET]);
    let sent = signed(&format!("t={VECTOR_TIME},v1={VECTOR}"));
    let verified = sent.verify_at(&*provider, VECTOR_TIME).unwrap();
    let [(name, value)] = &provider.sign(&sent.delivery(), verified, b"{}")[..] else { panic!("one header") };
    assert_eq!(name, "stripe-signature");
    let renewed = Sent::body("{}").header("stripe-signature", value.to_str().unwrap());
    assert_eq!(renewed.verify_at(&*provider, VECTOR_TIME), Ok(Verified::BySecret(1)));
    assert!(provider.sign(&sent.delivery(), Verified::NotChecked, b"{}").is_empty());
}
