//! The pure parts of a delivery's way, each as one step that can be repeated: shared by the timing of `parts` and the
//! counting of `instructions`.

#![expect(clippy::unwrap_used, reason = "a bench ends where its fixture is not what it should be")]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use hookonce::config::{self, Encoding, HmacAlgorithm, KeyPart, KeySource, Place, ProviderKind, Secret, Verify};
use hookonce::event::EventKey;
use hookonce::provider::{self, Delivery, Provider};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

/// When the deliveries were signed and arrive.
const NOW: u64 = 1_772_355_600;
const SECRET: &str = "secret";

/// One part by its name.
pub struct Case {
    /// `group/what`.
    pub name: String,
    /// Does it once.
    pub step: Box<dyn Fn()>,
}

/// Every part, in the order of a delivery's way.
pub fn cases() -> Vec<Case> {
    let mut cases = signatures();
    cases.extend(extractions());
    cases.extend(splits());
    cases.extend(keys());
    cases
}

fn case(name: impl Into<String>, step: impl Fn() + 'static) -> Case {
    Case { name: name.into(), step: Box::new(step) }
}

fn signatures() -> Vec<Case> {
    let body = Bytes::from(format!(r#"{{"id":"evt_1","note":"{}"}}"#, "x".repeat(2048)));
    let stripe = hmac_hex(format!("{NOW}.{}", str::from_utf8(&body).unwrap()).as_bytes());
    let stripe = headers("stripe-signature", &format!("t={NOW},v1={stripe}"));
    let meta = headers("x-hub-signature-256", &format!("sha256={}", hmac_hex(&body)));
    let signed = headers("x-signature", &hmac_hex(&body));
    let verify = Verify::Hmac {
        algorithm: HmacAlgorithm::Sha256,
        signature: Place::Header("x-signature".to_owned()),
        encoding: Encoding::Hex,
        prefix: String::new(),
    };
    let generic = config::Provider { verify, ..generic() };
    let hottok = headers("x-hotmart-hottok", SECRET);
    vec![
        signature("signature/stripe_2KB", build(&preset(ProviderKind::Stripe)), stripe, &body),
        signature("signature/meta_2KB", build(&preset(ProviderKind::Meta)), meta, &body),
        signature("signature/hmac_2KB", build(&generic), signed, &body),
        signature("signature/hotmart_token", build(&preset(ProviderKind::Hotmart)), hottok, &body),
    ]
}

fn signature(name: &str, provider: Arc<dyn Provider>, headers: HeaderMap, body: &Bytes) -> Case {
    let body = body.clone();
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    case(name, move || {
        let verified = provider.verify(&delivery(&headers, &body), black_box(now));
        // A refusal is quicker than a check to its end.
        assert!(verified.is_ok(), "{verified:?}");
    })
}

fn extractions() -> Vec<Case> {
    [
        (preset(ProviderKind::Stripe), "stripe/snapshot"),
        (preset(ProviderKind::Hotmart), "hotmart/approved"),
        (preset(ProviderKind::Meta), "meta/messages_and_statuses"),
        (preset(ProviderKind::Evolution), "evolution/upsert"),
        (preset(ProviderKind::Marcha), "marcha/order_paid"),
        (generic(), "stripe/snapshot"),
    ]
    .into_iter()
    .map(|(config, fixture)| {
        let provider = build(&config);
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{fixture}.json"));
        let body = Bytes::from(std::fs::read(path).unwrap());
        let headers = HeaderMap::new();
        case(format!("extract/{}", config.kind.label()), move || {
            let found = provider.extract(&delivery(&headers, black_box(&body)));
            assert!(found.events.iter().all(|event| event.key.is_ok()), "{:?}", found.events);
        })
    })
    .collect()
}

/// From the body of a batch to the body of every part.
fn splits() -> Vec<Case> {
    [1, 10, 100, 1000]
        .into_iter()
        .map(|messages| {
            let provider = build(&preset(ProviderKind::Meta));
            let (headers, body) = (HeaderMap::new(), batch_of(messages));
            case(format!("split/meta_{messages}"), move || {
                let found = provider.extract(&delivery(&headers, black_box(&body)));
                assert_eq!(found.events.len(), messages);
                if let Some(batch) = found.batch {
                    (0..messages).for_each(|event| drop(black_box(batch.part(&[event]))));
                }
            })
        })
        .collect()
}

fn keys() -> Vec<Case> {
    let long = "x".repeat(300);
    vec![
        case("key/plain", || drop(black_box(EventKey::new("shop", [Some(black_box("evt_1TQkVw2eZvKYlo2C0000"))])))),
        case("key/escaped", || drop(black_box(EventKey::new("shop", [Some(black_box("2026-02-03T10:00:00Z")), None])))),
        case("key/too_long", move || drop(black_box(EventKey::new("shop", [Some(black_box(&*long))])))),
    ]
}

/// A batch of messages with their contacts, as WhatsApp sends them.
fn batch_of(messages: usize) -> Bytes {
    let list = |of: &dyn Fn(usize) -> String| (0..messages).map(of).collect::<Vec<_>>().join(",");
    let contacts = list(&|index| format!(r#"{{"profile":{{"name":"Ana"}},"wa_id":"55119{index:08}"}}"#));
    let sent = list(&|index| {
        format!(
            r#"{{"from":"55119{index:08}","id":"wamid.{index:040}","timestamp":"1772355600","type":"text","text":{{"body":"Is the order on its way?"}}}}"#
        )
    });
    Bytes::from(format!(
        r#"{{"object":"whatsapp_business_account","entry":[{{"id":"1","changes":[{{"value":{{"messaging_product":"whatsapp","metadata":{{"display_phone_number":"5511900000000","phone_number_id":"106540352242922"}},"contacts":[{contacts}],"messages":[{sent}]}},"field":"messages"}}]}}]}}"#
    ))
}

fn preset(kind: ProviderKind) -> config::Provider {
    config::Provider { kind, secrets: vec![Secret::new(SECRET)], verify: Verify::Preset, key: None, events: None }
}

fn generic() -> config::Provider {
    let id = KeyPart { written: "$.id".to_owned(), source: KeySource::Body("$.id".to_owned()), optional: false };
    config::Provider { key: Some(vec![id]), ..preset(ProviderKind::Generic) }
}

fn build(config: &config::Provider) -> Arc<dyn Provider> {
    provider::build(config, config.kind.label()).unwrap()
}

fn headers(name: &str, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap())])
}

fn delivery<'a>(headers: &'a HeaderMap, body: &'a Bytes) -> Delivery<'a> {
    Delivery { path: "/hook", query: "", headers, body }
}

fn hmac_hex(message: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(message);
    data_encoding::HEXLOWER.encode(&mac.finalize().into_bytes())
}
