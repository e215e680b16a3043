//! Evolution: its events one by one, in the shapes of 2.x and 1.8.

use super::*;
use hookonce::config::Place;

fn sent(fixture: &str) -> Sent {
    Sent::fixture(&format!("evolution/{fixture}.json"))
}

/// The sample with one text in place of another.
fn with(fixture: &str, from: &str, to: &str) -> Sent {
    let body = String::from_utf8(sent(fixture).body.to_vec()).unwrap();
    assert!(body.contains(from), "{fixture} holds {from}");
    Sent::body(body.replace(from, to))
}

#[test]
fn what_has_an_id_is_keyed_by_it() {
    let provider = plain(ProviderKind::Evolution);
    let one = |kind: &str, rest: &str| one(kind, &format!("evolution:store-one:{kind}:{rest}"));
    for (fixture, expected) in [
        ("upsert", one("messages.upsert", "3EB0AAAA00000001")),
        ("upsert_again_later", one("messages.upsert", "3EB0AAAA00000001")),
        ("send", one("send.message", "3EB0AAAA00000001")),
        ("update_delivered", one("messages.update", "3EB0AAAA00000001:DELIVERY_ACK:#:#")),
        ("update_read", one("messages.update", "3EB0AAAA00000001:READ:#:#")),
        ("update_read_in_group", one("messages.update", "3EB0AAAA00000001:READ:5500000000003@s.whatsapp.net:#")),
        ("update_v18", one("messages.update", "3EB0AAAA00000001:READ:#:#")),
        ("deleted_by_sender", one("messages.delete", "3EB0AAAA00000001")),
        ("deleted_by_api", one("messages.delete", "BAE5BBBB00000001")),
        ("call_offer", one("call", "CALLAAAA0001:offer")),
        ("call_timeout", one("call", "CALLAAAA0001:timeout")),
    ] {
        assert_eq!(sent(fixture).found(&*provider), expected, "{fixture}");
    }
}

#[test]
fn what_has_no_id_is_keyed_by_its_moment() {
    let provider = plain(ProviderKind::Evolution);
    for (fixture, kind) in [
        ("connecting", "connection.update"),
        ("qrcode", "qrcode.updated"),
        ("presence", "presence.update"),
        ("logout", "logout.instance"),
        ("chats_array", "chats.upsert"),
        ("contact_object", "contacts.update"),
        ("unknown_kind", "something.new"),
        ("upsert_without_id", "messages.upsert"),
    ] {
        let [event] = &sent(fixture).events(&*provider)[..] else { panic!("{fixture} is one event") };
        let key = event.key.as_ref().unwrap_or_else(|reason| panic!("{fixture}: {reason}")).as_str();
        let start = format!("evolution:store-one:{kind}:2026-03-01T09%3A00%3A00.111Z:");
        assert!(key.starts_with(&start) && key.len() == start.len() + 64, "{fixture}: {key}");
        assert_eq!(event.kind, kind);

        let later = with(fixture, "2026-03-01T09:00:00.111Z", "2026-03-01T09:00:01.111Z");
        assert_ne!(later.key(&*provider).unwrap(), key, "{fixture}: a state may come again");
        let without_time = with(fixture, "date_time", "other_time");
        assert_eq!(without_time.key(&*provider), Err(Unkeyed::Part("$.date_time".to_owned())), "{fixture}");
    }
    let error = sent("error").key(&*provider).unwrap();
    assert!(error.starts_with("evolution:#:error:2026-03-01T09%3A00%3A00.111Z:"), "{error}");
    assert!(!error.contains("global-key"), "{error}");
    assert_eq!(
        sent("unknown_kind_without_time").found(&*provider),
        unkeyed("something.new", "no usable value at `$.date_time`")
    );
}

#[test]
fn different_events_have_different_keys() {
    let provider = plain(ProviderKind::Evolution);
    let mut seen = std::collections::HashMap::new();
    for fixture in [
        "upsert",
        "send",
        "update_delivered",
        "update_read",
        "update_read_in_group",
        "update_votes",
        "update_more_votes",
        "edited",
        "edited_again",
        "deleted_by_sender",
        "deleted_by_api",
        "call_offer",
        "call_timeout",
        "participants",
        "participants_again_later",
        "connecting",
        "connecting_again_later",
        "qrcode",
        "presence",
        "logout",
        "chats_array",
        "contact_object",
        "unknown_kind",
        "error",
    ] {
        let key = sent(fixture).key(&*provider).unwrap();
        assert_eq!(seen.insert(key.clone(), fixture), None, "{fixture}: {key}");
    }
}

#[test]
fn retries_and_the_global_copy_are_the_same_event() {
    let provider = plain(ProviderKind::Evolution);
    for (fixture, from, to) in [
        ("upsert", "\"pushName\": \"Bia\"", "\"pushName\": \"Bia\", \"chatwootMessageId\": 5"),
        ("upsert", "\"apikey\": null", "\"apikey\": \"invented\""),
        ("update_read", "https://hooks.example.com/evo", "https://elsewhere.example.com"),
        ("connecting", "https://hooks.example.com/evo", "https://elsewhere.example.com"),
        ("connecting", "\n", " "),
        ("update_v18", "1772355661000", "1772355999000"),
    ] {
        assert_eq!(with(fixture, from, to).key(&*provider), sent(fixture).key(&*provider), "{fixture}: {to}");
    }
    assert_ne!(with("upsert", "store-one", "store-two").key(&*provider), sent("upsert").key(&*provider));
}

#[test]
fn the_elements_of_an_array_are_events_of_their_own_where_they_have_ids() {
    let provider = plain(ProviderKind::Evolution);
    let found = sent("update_array").found(&*provider);
    let keys: Vec<_> = found.iter().map(|(_, key)| key.as_deref().unwrap()).collect();
    assert_eq!(
        keys[..2],
        [
            "evolution:store-one:messages.update:3EB0AAAA00000001:3:#:#",
            "evolution:store-one:messages.update:3EB0AAAA00000002:3:#:#",
        ]
    );
    assert!(keys[2].starts_with("evolution:store-one:messages.update:2026-03-01T09%3A00%3A00.111Z:"), "{}", keys[2]);
    assert_eq!(keys.len(), 3);
    assert!(provider.extract(&sent("update_array").delivery()).batch.is_none(), "it cannot be cut");
}

#[test]
fn the_conversation_is_the_other_side() {
    let provider = plain(ProviderKind::Evolution);
    for (fixture, expected) in [
        ("upsert", Some("5500000000002@s.whatsapp.net")),
        ("update_read", Some("5500000000002@s.whatsapp.net")),
        ("connecting", None),
    ] {
        assert_eq!(sent(fixture).events(&*provider)[0].conversation.as_deref(), expected, "{fixture}");
    }
}

#[test]
fn an_instance_is_needed_and_what_is_no_text_is_never_left_out() {
    let provider = plain(ProviderKind::Evolution);
    let nameless = with("upsert", "\"instance\"", "\"instanceName\"");
    assert_eq!(nameless.key(&*provider), Err(Unkeyed::Part("$.instance".to_owned())));
    let twice = with("update_read", "\"status\": \"READ\"", "\"status\": \"READ\", \"status\": \"PLAYED\"");
    let key = twice.key(&*provider).unwrap();
    assert!(key.starts_with("evolution:store-one:messages.update:2026-03-01T09%3A00%3A00.111Z:"), "{key}");
}

#[test]
fn a_token_in_the_query_survives_the_by_events_suffix() {
    let verify = Verify::Token(Place::Query("token".to_owned()));
    let provider = build(&config::Provider { verify, ..config(ProviderKind::Evolution) });
    for (query, expected) in [
        ("token=secret", Ok(Verified::BySecret(0))),
        ("token=secret/messages-upsert", Ok(Verified::BySecret(0))),
        ("token=secre/messages-upsert", Err(AuthFailure::Mismatch)),
        ("token=secretx", Err(AuthFailure::Mismatch)),
        ("other=secret/messages-upsert", Err(AuthFailure::Missing)),
    ] {
        assert_eq!(sent("upsert").query(query).verify(&*provider), expected, "{query}");
    }
}
