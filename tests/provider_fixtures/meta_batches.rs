//! Meta: batches of any shape, and the parts they are cut into.

use bytes::Bytes;
use hookonce::provider::Verified;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use crate::meta::{delivery, extract, provider};

/// A piece of a delivery, with the texts of the events in it in the order in which they stand there.
///
/// `§` stands for a number of its own, so that no two events have one text.
#[derive(Clone, Debug)]
struct Piece {
    text: String,
    events: Vec<String>,
}

impl Piece {
    fn envelope(text: impl Into<String>) -> Self {
        Self { text: text.into(), events: Vec::new() }
    }

    fn event(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { events: vec![text.clone()], text }
    }

    /// A value without any event is one itself, and its empty `mark` must differ from that of others like it.
    fn or_event(self) -> Self {
        if self.events.is_empty() { Self::event(self.text.replacen("\"\"", "\"§\"", 1)) } else { self }
    }
}

fn joined(open: char, pieces: &[Piece], close: char, space: &str) -> Piece {
    let texts: Vec<_> = pieces.iter().map(|piece| piece.text.clone()).collect();
    let text = format!("{open}{space}{}{space}{close}", texts.join(&format!("{space},{space}")));
    Piece { text, events: pieces.iter().flat_map(|piece| piece.events.clone()).collect() }
}

fn spaces() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["", "", " ", "\n  ", "\t\r\n"][..])
}

fn object(members: impl Strategy<Value = Vec<(String, Piece)>>) -> impl Strategy<Value = Piece> {
    (members.prop_shuffle(), spaces(), spaces()).prop_map(|(members, space, colon)| {
        let members: Vec<_> = members
            .into_iter()
            .map(|(name, value)| Piece { text: format!("\"{name}\"{colon}:{space}{}", value.text), ..value })
            .collect();
        joined('{', &members, '}', space)
    })
}

fn array(
    element: impl Strategy<Value = Piece>,
    size: impl Into<prop::collection::SizeRange>,
) -> impl Strategy<Value = Piece> {
    (prop::collection::vec(element, size), spaces()).prop_map(|(elements, space)| joined('[', &elements, ']', space))
}

/// Members whose spelling a parser and printer would not keep.
fn oddities() -> impl Strategy<Value = Vec<(String, Piece)>> {
    let odd = [
        ("n", "1e2"),
        ("big", "900719925474099312345"),
        ("zero", "-0.00"),
        ("text", r#"{"body":"\u00e9 \/ \ud83d\ude00 ]}, \" \\"}"#),
        (r"\u0061", "[ [ ] , { } ]"),
        ("lone", r#""\ud83d""#),
        ("", "null"),
    ];
    prop::sample::subsequence(odd.to_vec(), 0..4)
        .prop_map(|odd| odd.into_iter().map(|(name, value)| (name.to_owned(), Piece::envelope(value))).collect())
}

fn element(members: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = Piece> {
    let members = oddities().prop_map(|odd| {
        let known = members.iter().map(|(name, value)| ((*name).to_owned(), Piece::envelope(*value)));
        known.chain(odd).collect::<Vec<_>>()
    });
    object(members).prop_map(|object| Piece::event(object.text))
}

fn elements() -> impl Strategy<Value = (String, Piece)> {
    let message = prop_oneof![
        4 => element(&[("id", r#""wamid.§""#), ("from", r#""5511900000001""#), ("type", r#""text""#)]),
        4 => element(&[("id", r#""wamid.\u00e9\/§""#), ("from_user_id", r#""BR.2""#)]),
        1 => element(&[("from", r#""5511900000003""#), ("mark", r#""§""#)]),
        1 => element(&[("id", "[§]")]),
        1 => Just(Piece::event(r#""stray §""#)),
        1 => Just(Piece::event("[ §]")),
    ];
    let status = prop_oneof![
        element(&[("id", r#""wamid.§""#), ("status", r#""read""#), ("recipient_id", r#""5511900000001""#)]),
        element(&[("id", r#""wamid.§""#), ("status", r#""sent""#), ("recipient_participant_user_id", r#""BR.2""#)]),
        element(&[("id", r#""wacid.§""#), ("status", r#""RINGING""#), ("type", r#""call""#), ("timestamp", "17")]),
    ];
    let call = element(&[("id", r#""wacid.§""#), ("event", r#""connect""#), ("timestamp", "1760000000")]);
    let echo = element(&[("id", "§"), ("to", r#""5511900000003""#)]);
    let preference = element(&[
        ("user_id", r#""BR.§""#),
        ("category", r#""marketing_messages""#),
        ("value", r#""stop""#),
        ("timestamp", "17e8"),
    ]);
    let sync = element(&[("action", r#""add""#), ("contact", r#"{"n":"§"}"#), ("metadata", r#"{"timestamp":"17"}"#)]);
    let whole = |piece: Piece| Piece::event(piece.text);
    prop_oneof![
        4 => array(message, 0..4).prop_map(|array| ("messages".to_owned(), array)),
        4 => array(status, 0..4).prop_map(|array| ("statuses".to_owned(), array)),
        1 => array(call, 0..3).prop_map(|array| ("calls".to_owned(), array)),
        1 => array(echo, 0..3).prop_map(|array| ("message_echoes".to_owned(), array)),
        1 => array(preference, 0..3).prop_map(|array| ("user_preferences".to_owned(), array)),
        1 => array(sync, 0..3).prop_map(|array| ("state_sync".to_owned(), array)),
        1 => array(element(&[("code", "§")]), 1..3).prop_map(move |array| ("errors".to_owned(), whole(array))),
        1 => array(element(&[("id", "§")]), 1..3).prop_map(move |array| ("polls".to_owned(), whole(array))),
        1 => element(&[("id", "§")]).prop_map(|object| ("flows".to_owned(), object)),
        1 => Just(("calls".to_owned(), Piece::event(r#""no array §""#))),
    ]
}

fn value() -> impl Strategy<Value = Piece> {
    let envelope = [
        ("messaging_product", r#""whatsapp""#),
        ("metadata", r#"{"phone_number_id" : 700001, "x":1.0}"#),
        ("contacts", r#"[{"wa_id":"5511900000001"} ,{"user_id":"BR.2","n":1e2}, {"wa_id":"5511900000009"}]"#),
        ("later", "1E+2"),
        ("hollow", "[ ]"),
        ("nothing", "null"),
    ];
    let members = (prop::sample::subsequence(envelope.to_vec(), 0..=6), prop::collection::vec(elements(), 0..4))
        .prop_map(|(envelope, mut arrays)| {
            arrays.sort_by(|(one, _), (other, _)| one.cmp(other));
            arrays.dedup_by(|(one, _), (other, _)| one == other);
            let envelope = envelope.into_iter().map(|(name, value)| (name.to_owned(), Piece::envelope(value)));
            let mark = ("mark".to_owned(), Piece::envelope(r#""""#));
            arrays.into_iter().chain(envelope).chain([mark]).collect::<Vec<_>>()
        });
    object(members)
}

fn change() -> impl Strategy<Value = Piece> {
    let member = |name: &str, value: Piece| (name.to_owned(), value);
    let field = move |name: &str| member("field", Piece::envelope(format!("\"{name}\"")));
    let listed = (prop::sample::select(&["messages", "calls"][..]), value())
        .prop_map(move |(name, value)| vec![field(name), member("value", value.or_event())]);
    let unlisted = (prop::sample::select(&["account_update", "history", "new_field"][..]), value()).prop_map(
        move |(name, value)| {
            let marked = value.text.replace('§', "0").replacen('{', r#"{"number":"§","#, 1);
            vec![field(name), member("value", Piece::event(marked))]
        },
    );
    let beside = (prop::sample::select(&["messages", "security"][..]), Just(Piece::event(r#"{"a":"§"}"#)))
        .prop_map(move |(name, trace)| vec![field(name), member("trace", trace), member("v", Piece::envelope("2"))]);
    prop_oneof![
        6 => object(listed),
        2 => object(unlisted),
        1 => object(beside),
        1 => Just(Piece::event(r#"{ "field":"messages","mark":"§" }"#)),
        1 => Just(Piece::event(r#""no object §""#)),
    ]
}

fn entry() -> impl Strategy<Value = Piece> {
    let entry = (array(change(), 0..4), prop::option::of(Just("1760000000")), any::<bool>()).prop_map(
        |(changes, time, standby)| {
            let mut members = vec![("id".to_owned(), Piece::envelope(r#""300100""#)), ("changes".to_owned(), changes)];
            members.extend(time.map(|time| ("time".to_owned(), Piece::envelope(time))));
            members.extend(standby.then(|| ("standby".to_owned(), Piece::event(r#"[{"a":"§"}]"#))));
            members
        },
    );
    prop_oneof![
        8 => object(entry).prop_filter("an event each", |entry| !entry.events.is_empty()),
        1 => Just(Piece::event(r#"{"id":"§","changes":[]}"#)),
        1 => Just(Piece::event("§")),
    ]
}

fn batch() -> impl Strategy<Value = Piece> {
    let members = (array(entry(), 1..4), any::<bool>()).prop_map(|(entries, paging)| {
        let whatsapp = Piece::envelope(r#""whatsapp_business_account""#);
        let mut members = vec![("object".to_owned(), whatsapp), ("entry".to_owned(), entries)];
        members.extend(paging.then(|| ("paging".to_owned(), Piece::event(r#"{"next":"§"}"#))));
        members
    });
    object(members).prop_map(numbered)
}

/// Every `§` replaced by a number; those in the text stand in its events, in the same order.
fn numbered(batch: Piece) -> Piece {
    fn number(text: &str, next: &mut usize) -> String {
        text.chars().fold(String::new(), |mut numbered, character| {
            match character {
                '§' => {
                    numbered.push_str(&format!("{:04}", *next));
                    *next += 1;
                }
                other => numbered.push(other),
            }
            numbered
        })
    }
    let text = number(&batch.text, &mut 1000);
    let mut next = 1000;
    Piece { text, events: batch.events.iter().map(|event| number(event, &mut next)).collect() }
}

fn signed(body: &Bytes) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in ["x-hub-signature", "x-hub-signature-256"] {
        headers.insert(name, HeaderValue::from_static("to be renewed"));
    }
    let renewed = provider().sign(&delivery(&headers.clone(), body), Verified::BySecret(1), body);
    assert_eq!(renewed.len(), 2);
    headers.extend(renewed.into_iter().map(|(name, value)| (Some(name), value)));
    headers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The parts' elements together are the batch's elements, each once and as it was written; and a part is a
    /// delivery like any other, which holds the one event that it was made for.
    #[test]
    fn parts_are_the_batch(batch in batch()) {
        let body = Bytes::from(batch.text.clone());
        let whole = extract(&body);
        prop_assert_eq!(whole.events.len(), batch.events.len(), "{}", batch.text);
        prop_assert_eq!(whole.batch.is_some(), batch.events.len() > 1);
        let Some(cut) = whole.batch else { return Ok(()) };
        for (index, event) in whole.events.iter().enumerate() {
            let part = cut.part(&[index]);
            let text = std::str::from_utf8(&part).unwrap();
            for (other, element) in batch.events.iter().enumerate() {
                prop_assert_eq!(text.matches(&**element).count(), usize::from(other == index), "{}\nin {}", element, text);
            }
            prop_assert_eq!(&*extract(&part).events, std::slice::from_ref(event), "{}", text);
            let headers = signed(&part);
            let verified = provider().verify(&delivery(&headers, &part), std::time::SystemTime::now());
            prop_assert_eq!(verified, Ok(Verified::BySecret(1)));
        }
    }

    /// A part with several events holds these and no other, in the order of the whole.
    #[test]
    fn several_events_can_stay_together(batch in batch(), choice in prop::collection::vec(any::<prop::sample::Index>(), 1..8)) {
        let body = Bytes::from(batch.text.clone());
        let whole = extract(&body);
        let Some(cut) = whole.batch else { return Ok(()) };
        let chosen: Vec<_> = choice.iter().map(|index| index.index(whole.events.len())).collect();
        let part = cut.part(&chosen);
        let expected: Vec<_> = (0..whole.events.len()).filter(|index| chosen.contains(index)).collect();
        let text = std::str::from_utf8(&part).unwrap();
        for (index, element) in batch.events.iter().enumerate() {
            prop_assert_eq!(text.matches(&**element).count(), usize::from(expected.contains(&index)), "{}", text);
        }
        let events: Vec<_> = expected.iter().map(|index| whole.events[*index].clone()).collect();
        prop_assert_eq!(extract(&part).events, events, "{}", text);
    }
}

#[test]
fn a_part_is_the_same_document_with_one_element() {
    let body = Bytes::from_static(
        br#"{ "object" : "whatsapp_business_account", "entry":[ {"id":"1", "time" : 1e2,
        "changes":[{"value":{"statuses":[{"id":"S1","status":"read"},{"id":"S2","status":"read"}],
        "messaging_product":"whatsapp","messages":[{"id":"M1" , "n":1.0}],"metadata":{"phone_number_id":"7"}},
        "field":"messages"}]}, {"id":"2","changes":[]} ]}"#,
    );
    let batch = extract(&body).batch.unwrap();
    for (events, expected) in [
        (
            &[1][..],
            r#"{"object" : "whatsapp_business_account","entry":[{"id":"1","time" : 1e2,"changes":[{"value":{"statuses":[{"id":"S2","status":"read"}],"messaging_product":"whatsapp","metadata":{"phone_number_id":"7"}},"field":"messages"}]}]}"#,
        ),
        (
            &[2],
            r#"{"object" : "whatsapp_business_account","entry":[{"id":"1","time" : 1e2,"changes":[{"value":{"messaging_product":"whatsapp","messages":[{"id":"M1" , "n":1.0}],"metadata":{"phone_number_id":"7"}},"field":"messages"}]}]}"#,
        ),
        (
            &[3, 0],
            r#"{"object" : "whatsapp_business_account","entry":[{"id":"1","time" : 1e2,"changes":[{"value":{"statuses":[{"id":"S1","status":"read"}],"messaging_product":"whatsapp","metadata":{"phone_number_id":"7"}},"field":"messages"}]},{"id":"2","changes":[]}]}"#,
        ),
    ] {
        assert_eq!(batch.part(events), expected);
    }
}

#[test]
fn contacts_come_along_with_their_own_elements() {
    const CONTACTS: [&str; 4] =
        [r#"{"wa_id":"A"}"#, r#"{"user_id":"BR.B", "wa_id":"B"}"#, r#"{"user_id":"BR.C"}"#, "7"];
    let table: &[(&str, &[usize])] = &[
        (r#""messages":[{"id":"1","from":"A"}]"#, &[0]),
        (r#""messages":[{"id":"1","from_user_id":"BR.B"}]"#, &[1]),
        (r#""messages":[{"id":"1","from":"B","from_user_id":"BR.B"}]"#, &[1]),
        (r#""statuses":[{"id":"1","status":"read","recipient_id":"A"}]"#, &[0]),
        (r#""statuses":[{"id":"1","status":"read","recipient_user_id":"BR.C"}]"#, &[2]),
        (r#""statuses":[{"id":"1","status":"read","recipient_id":"G","recipient_participant_id":"B"}]"#, &[1]),
        (r#""statuses":[{"id":"1","status":"read","recipient_participant_user_id":"BR.C"}]"#, &[2]),
        (r#""message_echoes":[{"id":"1","from":"A","to":"B"}]"#, &[0, 1]),
        (r#""calls":[{"id":"1","from":"X","to":"\u0041"}]"#, &[0]),
        (r#""user_preferences":[{"wa_id":"A"}]"#, &[0]),
        (r#""user_preferences":[{"user_id":"BR.C"}]"#, &[2]),
        (r#""messages":[{"id":"1","from":"X"}]"#, &[0, 1, 2, 3]),
        (r#""messages":[{"id":"1"}]"#, &[0, 1, 2, 3]),
        (r#""polls":[{"from":"A"}]"#, &[0, 1, 2, 3]),
    ];
    for (element, expected) in table {
        for around in ["{\"contacts\":[CONTACTS],ELEMENT}", "{ELEMENT, \"contacts\":[CONTACTS]}"] {
            let value = around.replace("CONTACTS", &CONTACTS.join(" ,")).replace("ELEMENT", element);
            let change = format!(r#"{{"field":"messages","value":{value}}}"#);
            let body = format!(
                r#"{{"object":"whatsapp_business_account","entry":[{{"id":"1","changes":[{change},{change}]}}]}}"#
            );
            let part = extract(&body.into()).batch.unwrap().part(&[1]);
            let text = std::str::from_utf8(&part).unwrap();
            let kept: Vec<_> = expected.iter().map(|index| CONTACTS[*index]).collect();
            assert!(text.contains(&format!("\"contacts\":[{}]", kept.join(","))), "{element} gave {text}");
        }
    }
}

#[test]
fn a_thousand_messages_give_a_thousand_small_parts() {
    let text = "x".repeat(3000);
    let messages: Vec<_> =
        (0..1000).map(|n| format!(r#"{{"id":"wamid.{n}","from":"{n}","text":{{"body":"{text}"}}}}"#)).collect();
    let contacts: Vec<_> = (0..1000).map(|n| format!(r#"{{"wa_id":"{n}"}}"#)).collect();
    let body = Bytes::from(format!(
        r#"{{"object":"whatsapp_business_account","entry":[{{"id":"1","changes":[{{"field":"messages","value":{{"metadata":{{"phone_number_id":"7"}},"contacts":[{}],"messages":[{}]}}}}]}}]}}"#,
        contacts.join(","),
        messages.join(",")
    ));
    let whole = extract(&body);
    assert_eq!(whole.events.len(), 1000);
    let batch = whole.batch.unwrap();
    for (n, message) in messages.iter().enumerate() {
        let part = batch.part(&[n]);
        assert!(part.len() < 3500, "a part as long as what it holds");
        assert!(part.windows(message.len()).any(|window| window == message.as_bytes()));
    }
    assert_eq!(batch.part(&(0..1000).collect::<Vec<_>>()), body);
}
