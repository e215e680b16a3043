//! Asking a store about one key, where the answer must not be an error.

use std::time::{Duration, Instant, UNIX_EPOCH};

use hookonce::claim::{Found, Record, Recorded, State, Terms, Token};
use hookonce::event::EventKey;
use hookonce::store::ClaimStore;

use crate::redis_server::PATIENCE;

/// Times that nothing outlives by accident.
pub const TERMS: Terms = Terms { lease: Duration::from_secs(60), window: Duration::from_secs(3600) };

pub fn key() -> EventKey {
    EventKey::new("conformance", [Some(Token::fresh().as_str())])
}

pub fn delivered(status: u16) -> Record {
    Record { at: Some(UNIX_EPOCH + Duration::from_millis(1_760_000_000_123)), result: Recorded::Delivered(status) }
}

pub fn unknown() -> Record {
    Record { at: Some(UNIX_EPOCH + Duration::from_millis(1_760_000_000_456)), result: Recorded::Unknown }
}

pub async fn claim(store: &dyn ClaimStore, key: &EventKey, token: &Token, terms: Terms) -> Found {
    let mut answers = store.claim(std::slice::from_ref(key), token, terms).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0).unwrap()
}

pub async fn settle(store: &dyn ClaimStore, key: &EventKey, record: Record, window: Duration) {
    let answers = store.settle_done(&[(key.clone(), record, window)]).await;
    assert!(matches!(answers.as_slice(), [Ok(())]), "{answers:?}");
}

pub async fn release(store: &dyn ClaimStore, key: &EventKey, token: &Token) -> bool {
    let mut answers = store.release(std::slice::from_ref(key), token).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0).unwrap()
}

pub async fn renew(store: &dyn ClaimStore, key: &EventKey, token: &Token, terms: Terms) -> bool {
    let mut answers = store.renew(std::slice::from_ref(key), token, terms).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0).unwrap()
}

pub async fn state(store: &dyn ClaimStore, key: &EventKey, terms: Terms) -> Option<State> {
    store.look(key, terms).await.unwrap().map(|standing| standing.state)
}

pub async fn remaining(store: &dyn ClaimStore, key: &EventKey) -> Duration {
    store.look(key, TERMS).await.unwrap().expect("the key is absent").remaining
}

pub async fn until_absent(store: &dyn ClaimStore, key: &EventKey) {
    let deadline = Instant::now() + PATIENCE;
    while store.look(key, TERMS).await.unwrap().is_some() {
        assert!(Instant::now() < deadline, "the key does not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
