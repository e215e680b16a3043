//! Meta: which events its deliveries hold, and what identifies each.

use std::path::Path;

use bytes::Bytes;
use hookonce::config::{self, ProviderKind, Secret, Verify};
use hookonce::event::{Event, Unkeyed};
use hookonce::provider::{Delivery, Extraction, Provider, build};
use http::HeaderMap;

pub(crate) fn provider() -> std::sync::Arc<dyn Provider> {
    let config = config::Provider {
        kind: ProviderKind::Meta,
        secrets: vec![Secret::new("old app secret"), Secret::new("app secret")],
        verify: Verify::Preset,
        key: None,
        events: None,
    };
    build(&config, "wa").unwrap_or_else(|| panic!("no provider for meta"))
}

pub(crate) fn delivery<'a>(headers: &'a HeaderMap, body: &'a Bytes) -> Delivery<'a> {
    Delivery { path: "/webhooks/meta", query: "", headers, body }
}

pub(crate) fn extract(body: &Bytes) -> Extraction {
    provider().extract(&delivery(&HeaderMap::new(), body))
}

fn fixture(name: &str) -> Bytes {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/meta").join(name).with_extension("json");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

/// One line for an event: its kind, its key or why it has none, and its conversation.
fn line(event: &Event) -> String {
    let key = event.key.as_ref().map_or_else(|unkeyed| format!("({unkeyed})"), ToString::to_string);
    format!("{} {key} {}", event.kind, event.conversation.as_deref().unwrap_or("-"))
}

#[test]
fn each_delivery_holds_these_events() {
    let table: &[(&str, &[&str])] = &[
        (
            "messages_and_statuses",
            &[
                "message wa:message:700001:wamid.AAA1 700001:5511900000001",
                "message wa:message:700001:wamid.AAA2 700001:5511900000002",
                "status wa:status:700001:wamid.BBB1:sent:# 700001:5511900000001",
                "status wa:status:700001:wamid.BBB1:delivered:# 700001:5511900000001",
                "status wa:status:700002:wamid.BBB1:read:# 700002:5511900000001",
            ],
        ),
        (
            "group_statuses",
            &[
                "status wa:status:700001:wamid.GGG1:read:5511900000001 700001:GROUP1",
                "status wa:status:700001:wamid.GGG1:read:BR.900002 700001:GROUP1",
                "status (no usable value at `entry[].changes[].value.statuses[].\
                 recipient_participant_id|recipient_participant_user_id`) 700001:GROUP1",
            ],
        ),
        (
            "users_without_number",
            &[
                "message wa:message:700001:wamid.UUU1 700001:BR.900003",
                "status wa:status:700001:wamid.UUU2:failed:# 700001:BR.900003",
            ],
        ),
        (
            "echoes",
            &["echo wa:echo:700001:wamid.EEE1 700001:5511900000001", "echo wa:echo:700001:wamid.EEE2 700001:BR.900003"],
        ),
        (
            "calls",
            &[
                "call wa:call:700001:wacid.CCC1:connect:1760000015 700001:5511900000001",
                "call wa:call:700001:wacid.CCC1:terminate:1760000016 700001:5511900000001",
                "call_status wa:call_status:700001:wacid.CCC1:RINGING:1760000015 700001:5511900000001",
                "error (no usable value at `entry[].time`) -",
            ],
        ),
        ("history", &["history wa:history:700001:88d0f467ef516b1c300e2b4e4d7d9f1d41c14667bc8590c1506db88f5e7fe94e -"]),
        (
            "state_sync",
            &[
                "state_sync wa:state_sync:700001:add:1760000017:f7fcc8a53888d41b54ddb591732249476d6b481564be1a99f3d743437c133055 700001:+55 11 90000-0001",
                "state_sync wa:state_sync:700001:add:1760000017:b680b0f38706589a1b9d624ca7421c35c6978b3dfb31297e7cb0ce3baf041c16 -",
                "state_sync (no usable value at `entry[].changes[].value.state_sync[].metadata.timestamp`) -",
            ],
        ),
        (
            "user_preferences",
            &[
                "user_preferences wa:user_preferences:700001:5511900000001:marketing_messages:stop:1760000018 \
                 700001:5511900000001",
                "user_preferences wa:user_preferences:700001:BR.900003:marketing_messages:resume:1760000019 \
                 700001:BR.900003",
            ],
        ),
        ("errors_without_time", &["error (no usable value at `entry[].time`) -"]),
        (
            "errors_with_time",
            &["error wa:error:700001:1760000020:eb642c052575e51fc2ab78a78e73583b047b0b047710a1d02fae7f51e331ea24 -"],
        ),
        (
            "template_update",
            &[
                "message_template_status_update wa:message_template_status_update:300100:1760000021:c896b1a1fc2843c44491017b32feeca57bb80070eceee42e72e386daefc707b1 -",
            ],
        ),
        (
            "group_update",
            &[
                "group_lifecycle_update wa:group_lifecycle_update:300100:#:36123f8ca66e3418dbaab5f4fd7d12ff277c020e3bda32263c2dfeee417b2e1f -",
            ],
        ),
        (
            "account_restricted_again",
            &[
                "account_update wa:account_update:300100:1760000023:a77fdd94d93a30e086006a793e1fb1c1711d653227ae3820389c43123e1cf4c3 -",
                "account_update wa:account_update:300100:1760000024:933b89d7cc703b8d1ce8883a2e69956206287d41282ac740a32ed28a133513f1 -",
                "account_update wa:account_update:300100:1760000025:a77fdd94d93a30e086006a793e1fb1c1711d653227ae3820389c43123e1cf4c3 -",
            ],
        ),
        (
            "unknown_content",
            &[
                "unknown (content of an unknown kind at `entry[].changes[].trace`) -",
                "unknown (content of an unknown kind at `entry[].changes[].value.polls`) -",
                "message wa:message:700001:wamid.AAA1 700001:5511900000001",
                "unknown (content of an unknown kind at `entry[].changes[].value.messages[]`) -",
                "message (no usable value at `entry[].changes[].value.messages[].id`) 700001:5511900000001",
                "unknown (content of an unknown kind at `entry[].changes[].value.messages[]`) -",
                "unknown (content of an unknown kind at `entry[].changes[].value.unknown`) -",
                "unknown (content of an unknown kind at `entry[].changes[].value.calls`) -",
                "new_field (content of an unknown kind at `entry[].changes[].value`) -",
                "unknown (content of an unknown kind at `entry[].changes[].value`) -",
                "unknown (content of an unknown kind at `entry[].changes[]`) -",
                "unknown (content of an unknown kind at `entry[].changes[]`) -",
                "unknown (content of an unknown kind at `entry[].messaging`) -",
                "unknown (content of an unknown kind at `entry[]`) -",
                "unknown (content of an unknown kind at `entry[]`) -",
                "unknown (content of an unknown kind at `$.paging`) -",
            ],
        ),
        (
            "no_phone_number_id",
            &[
                "message (no usable value at `entry[].changes[].value.metadata.phone_number_id`) :5511900000001",
                "message (no usable value at `entry[].changes[].value.metadata.phone_number_id`) :5511900000001",
            ],
        ),
        (
            "same_message_twice",
            &[
                "message wa:message:700001:wamid.AAA1 700001:5511900000001",
                "message wa:message:700001:wamid.AAA1 700001:5511900000001",
            ],
        ),
        (
            "messenger",
            &[
                "message wa:message:400100:m_AAA1 400100:88001",
                "echo wa:echo:400100:m_AAA2 400100:88001",
                "message_edit wa:message_edit:400100:m_AAA1:1 400100:88001",
                "postback wa:postback:400100:m_PPP1 400100:88001",
                "reaction wa:reaction:400100:88001:m_AAA2:react:❤:1760000033999 400100:88001",
                "reaction wa:reaction:400100:88001:m_AAA2:unreact:#:1760000034999 400100:88001",
                "delivery wa:delivery:400100:88001:1760000035000:1760000035999:9ee52365ef860c69d8a21ce606f7f51737a08360c3c9bbcc193bd806aad0cafa 400100:88001",
                "read wa:read:400100:88001:1760000036000:1760000036999 400100:88001",
                "unknown (content of an unknown kind at `entry[].messaging[]`) 400100:88001",
                "unknown (content of an unknown kind at `entry[].standby`) -",
            ],
        ),
        (
            "instagram",
            &[
                "message wa:message:500100:ig_AAA1 500100:99001",
                "message wa:message:500100:ig_AAA1:deleted 500100:99001",
                "read wa:read:500100:99001:ig_BBB1:1760000040000 500100:99001",
                "comments wa:comments:500100:17900001:#:1760000041:03d1d65366e3147fefed443f8ea30a1993dd52e401870af57be31ea571c54e40 -",
            ],
        ),
        (
            "page_feed",
            &[
                "feed wa:feed:400100:P1_C1:add:1760000049:fe17f77ccf0aae18fe873f30de51c51f458b54068b776a7c57d5fc92407f7d53 -",
                "feed wa:feed:400100:P1_C1:edited:1760000049:f5616e28de9c0d7cb136895322c5a9b2e93fb0967f5282009a5b4bf8a1c0e093 -",
                "leadgen wa:leadgen:400100:600001:#:1760000052:dff250c3e4dd17423a42be6ae777aac764f681d30364071a9d5671c6fc6d7715 -",
            ],
        ),
        (
            "user_photos",
            &["photos wa:photos:600100:1760000060:337bbea605c050309d26750a81873caf99cdee8c92e39f2ef7edee4475136f6d -"],
        ),
    ];
    for (name, expected) in table {
        let extraction = extract(&fixture(name));
        let lines: Vec<_> = extraction.events.iter().map(line).collect();
        assert_eq!(lines, *expected, "{name}");
        assert_eq!(extraction.batch.is_some(), expected.len() > 1, "{name}: only several events can be cut");
    }
    let fixtures = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/meta")).unwrap();
    assert_eq!(fixtures.count(), table.len(), "every fixture is in the table");
}

#[test]
fn what_holds_no_event_is_one_event_without_a_key() {
    let unknown = || Unkeyed::UnknownKind("$".to_owned());
    for (body, reason) in [
        ("", Unkeyed::EmptyBody),
        (" \n", Unkeyed::EmptyBody),
        ("hub.mode=subscribe", Unkeyed::NotJson),
        ("{\"object\":", Unkeyed::NotJson),
        ("[]", unknown()),
        ("null", unknown()),
        ("{}", unknown()),
        (r#"{"entry":[{"id":"1","changes":[{"field":"messages","value":{}}]}]}"#, unknown()),
        (r#"{"object":"whatsapp_business_account"}"#, unknown()),
        (r#"{"object":"whatsapp_business_account","entry":[]}"#, unknown()),
        (r#"{"object":"page","object":"instagram","entry":[1]}"#, unknown()),
    ] {
        let extraction = extract(&Bytes::from(body));
        assert_eq!(extraction.events.len(), 1, "{body}");
        assert_eq!(extraction.events[0].key, Err(reason), "{body}");
        assert!(extraction.batch.is_none(), "{body}");
    }
}

/// Samples out of which something is left without a key on purpose, and what.
const DELIBERATELY_UNKEYED: &[(&str, &[&str])] = &[
    // An error beside a call or a message has neither an id nor a time of its own.
    ("call_call_terminate.json", &["error"]),
    ("msg_interactive_message_with_err.json", &["error"]),
];

#[test]
fn samples_of_other_projects_yield_keys() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/payloads/meta");
    let Ok(samples) = std::fs::read_dir(&samples) else {
        println!("skipped: there are no samples at {}", samples.display());
        return;
    };
    for sample in samples {
        let path = sample.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let events = extract(&std::fs::read(&path).unwrap().into()).events;
        let unkeyed: Vec<_> = events.iter().filter(|event| event.key.is_err()).map(|event| &*event.kind).collect();
        let expected =
            DELIBERATELY_UNKEYED.iter().find(|(sample, _)| *sample == name).map_or(&[][..], |(_, kinds)| kinds);
        assert_eq!(unkeyed, expected, "{name}");
    }
}
