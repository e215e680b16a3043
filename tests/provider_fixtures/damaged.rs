//! Deliveries that somebody has damaged, by accident or on purpose: whatever comes, a provider gives an answer.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const KINDS: [ProviderKind; 6] = [
    ProviderKind::Stripe,
    ProviderKind::Hotmart,
    ProviderKind::Meta,
    ProviderKind::Evolution,
    ProviderKind::Marcha,
    ProviderKind::Generic,
];

/// Pieces that mean something to whoever reads JSON.
const PIECES: [&str; 16] =
    ["{", "}", "[", "]", "\"", "\\", ",", ":", "\\ud83d", "\\u0000", "null", "-0", "1e999", "\"id\":", "\u{feff}", "é"];

/// One damage to a body.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Drop(Index, Index),
    Repeat(Index, Index),
    Insert(Index, &'static str),
    Replace(Index, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Drop(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
        (any::<Index>(), select(&PIECES[..])).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
    ]
}

fn damaged(body: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut body = body.to_vec();
    for damage in damages {
        let place = |index: &Index| index.index(body.len() + 1);
        let span = |one: &Index, other: &Index| {
            let (one, other) = (place(one), place(other));
            one.min(other)..one.max(other)
        };
        match damage {
            Damage::Cut(at) => body.truncate(place(at)),
            Damage::Drop(from, to) => drop(body.drain(span(from, to))),
            Damage::Repeat(from, to) => {
                let span = span(from, to);
                let again = body[span.clone()].to_vec();
                body.splice(span.end..span.end, again);
            }
            Damage::Insert(at, piece) => drop(body.splice(place(at)..place(at), piece.bytes())),
            Damage::Replace(at, byte) => {
                let at = place(at);
                if let Some(old) = body.get_mut(at) {
                    *old = *byte;
                }
            }
        }
    }
    body
}

fn fixtures() -> Vec<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folders = std::fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// It has at least one event, is read the same way twice, and each part of a batch is read like any delivery.
    #[test]
    fn a_damaged_body_is_still_a_delivery(
        body in select(fixtures()),
        damages in prop::collection::vec(damage(), 1..5),
    ) {
        let sent = Sent::body(damaged(&body, &damages));
        for kind in KINDS {
            let provider = plain(kind);
            let extraction = provider.extract(&sent.delivery());
            prop_assert!(!extraction.events.is_empty(), "{}", kind.label());
            prop_assert_eq!(&sent.events(&*provider), &extraction.events, "{}", kind.label());
            let Some(batch) = extraction.batch else { continue };
            for index in 0..extraction.events.len() {
                let part = Sent::body(batch.part(&[index]));
                prop_assert!(!part.events(&*provider).is_empty(), "{}", kind.label());
            }
        }
    }

    /// A signature is for one body, and no header makes a provider stumble.
    #[test]
    fn no_damage_passes_a_signature_and_no_header_ends_the_reading(
        body in select(fixtures()),
        damages in prop::collection::vec(damage(), 1..3),
        value in prop::collection::vec(prop_oneof![b' '..=b'~', 0x80_u8..], 0..80),
    ) {
        let other = damaged(&body, &damages);
        for kind in KINDS {
            let provider = plain(kind);
            let mut sent = Sent::body(body.clone());
            for name in ["stripe-signature", "x-hub-signature-256", "x-hotmart-hottok", "authorization"] {
                sent.headers.insert(name, HeaderValue::from_bytes(&value).unwrap());
            }
            prop_assert!(sent.verify(&*provider).is_err(), "{}", kind.label());
            let renewed = provider.sign(&sent.delivery(), Verified::BySecret(0), &body);
            sent.headers.extend(renewed.into_iter().map(|(name, value)| (Some(name), value)));
            if sent.verify(&*provider).is_ok() && other != body {
                let forged = Sent { body: other.clone().into(), ..sent };
                prop_assert!(forged.verify(&*provider).is_err(), "{}", kind.label());
            }
        }
    }
}
