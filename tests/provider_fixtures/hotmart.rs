//! Hotmart: the token, the envelope's id, and the fallback without it.

use super::*;

#[test]
fn the_envelopes_id_is_the_key_and_the_transaction_is_not() {
    let provider = plain(ProviderKind::Hotmart);
    for (fixture, expected) in [
        ("approved", one("PURCHASE_APPROVED", "hotmart:0f5d6a51-7d0a-4a0e-9f52-1d4f3b1c0a01")),
        (
            "billet_printed_same_transaction",
            one("PURCHASE_BILLET_PRINTED", "hotmart:0f5d6a51-7d0a-4a0e-9f52-1d4f3b1c0a02"),
        ),
        ("no_id_no_date", unkeyed("PURCHASE_APPROVED", "no usable value at `$.creation_date`")),
    ] {
        assert_eq!(Sent::fixture(&format!("hotmart/{fixture}.json")).found(&*provider), expected, "{fixture}");
    }
}

#[test]
fn without_an_id_the_key_is_kind_transaction_date_and_content() {
    let provider = plain(ProviderKind::Hotmart);
    let key = |fixture: &str| Sent::fixture(&format!("hotmart/{fixture}.json")).key(&*provider).unwrap();
    let approved = key("no_id");
    assert!(approved.starts_with("hotmart:PURCHASE_APPROVED:HP0000000000001:1751371200123:"), "{approved}");
    assert_eq!(approved, key("no_id_reordered"), "order of names and a token in the body");
    assert_ne!(approved, key("no_id_another_product"));
    let club = key("no_id_club");
    assert!(club.starts_with("hotmart:CLUB_FIRST_ACCESS:#:1751371300789:"), "{club}");

    for (id, why) in [("null", "null"), ("\"\"", "empty")] {
        let body = String::from_utf8(Sent::fixture("hotmart/no_id.json").body.to_vec()).unwrap();
        let body = body.replacen('{', &format!("{{\"id\": {id},"), 1);
        assert_eq!(Sent::body(body).key(&*provider).unwrap(), approved, "{why}");
    }
}

#[test]
fn the_token_stands_in_its_header() {
    let secrets = vec![Secret::new("new-token"), Secret::new("old-token")];
    let provider = build(&config::Provider { secrets, ..config(ProviderKind::Hotmart) });
    let sent = Sent::fixture("hotmart/no_id_reordered.json");
    for (token, expected) in [
        ("new-token", Ok(Verified::BySecret(0))),
        ("old-token", Ok(Verified::BySecret(1))),
        ("invented-token", Err(AuthFailure::Mismatch)),
        ("new-toke", Err(AuthFailure::Mismatch)),
        ("", Err(AuthFailure::Missing)),
    ] {
        assert_eq!(sent.clone().header("X-HOTMART-HOTTOK", token).verify(&*provider), expected, "{token}");
    }
    assert_eq!(sent.verify(&*provider), Err(AuthFailure::Missing), "a token in the body is none");
    assert!(provider.sign(&sent.delivery(), Verified::BySecret(0), b"{}").is_empty());
}
