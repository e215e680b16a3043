//! A fault in hookonce itself: a panic anywhere in a delivery's way ends this delivery and nothing else.

use std::time::SystemTime;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::claim::{Forgotten, Found, Record, Standing, Terms, Token};
use crate::event::{Event, EventKey};
use crate::provider::{AuthFailure, Delivery, Extraction, Provider, Verified};
use crate::store::{Health, StoreError};

/// Where the panic comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Verify,
    Extract,
    Store,
}

struct Faulty(Fault);

impl Provider for Faulty {
    fn verify(&self, _: &Delivery<'_>, _: SystemTime) -> Result<Verified, AuthFailure> {
        assert_ne!(self.0, Fault::Verify, "a fault that the test planted");
        Ok(Verified::NotChecked)
    }
    fn extract(&self, _: &Delivery<'_>) -> Extraction {
        assert_ne!(self.0, Fault::Extract, "a fault that the test planted");
        let key = Ok(EventKey::new("faulty", [Some("1")]));
        Extraction { events: vec![Event { kind: "event".into(), key, conversation: None }], batch: None }
    }
    fn sign(&self, _: &Delivery<'_>, _: Verified, _: &[u8]) -> Vec<(http::HeaderName, http::HeaderValue)> {
        Vec::new()
    }
    fn identifies(&self) -> &'static str {
        "nothing"
    }
}

/// Every operation of it is a fault.
#[async_trait]
impl ClaimStore for Faulty {
    async fn claim(&self, _: &[EventKey], _: &Token, _: Terms) -> Vec<Result<Found, StoreError>> {
        panic!("a fault that the test planted")
    }
    async fn settle_done(&self, _: &[(EventKey, Record, Duration)]) -> Vec<Result<(), StoreError>> {
        panic!("a fault that the test planted")
    }
    async fn settle_unknown(&self, _: &EventKey, _: &Token, _: Record, _: Duration) -> Result<bool, StoreError> {
        panic!("a fault that the test planted")
    }
    async fn release(&self, _: &[EventKey], _: &Token) -> Vec<Result<bool, StoreError>> {
        panic!("a fault that the test planted")
    }
    async fn renew(&self, _: &[EventKey], _: &Token, _: Terms) -> Vec<Result<bool, StoreError>> {
        panic!("a fault that the test planted")
    }
    async fn promote(&self, _: &EventKey, _: &Token, _: Duration) -> Result<bool, StoreError> {
        panic!("a fault that the test planted")
    }
    async fn look(&self, _: &EventKey, _: Terms) -> Result<Option<Standing>, StoreError> {
        panic!("a fault that the test planted")
    }
    async fn forget(&self, _: &EventKey, _: Terms, _: bool) -> Result<Forgotten, StoreError> {
        panic!("a fault that the test planted")
    }
    async fn health(&self) -> Health {
        panic!("a fault that the test planted")
    }
}

const CONFIG: &str = "
server: {listen: 127.0.0.1:1, admin: 127.0.0.1:2}
store: {embedded: {path: ./none.db}}
routes:
  - {name: faulty, path: /faulty, provider: generic, verify: off, key: ['$.id'], upstream: 'http://127.0.0.1:9'}
";

fn gateway(fault: Fault) -> (Gateway, Arc<Metrics>) {
    let config = config::parse(CONFIG, &|_| None).expect("a configuration").config;
    let metrics = Arc::new(Metrics::new("test").expect("metrics"));
    let routes = config.routes.iter().cloned().map(|config| Route { config, provider: Some(Arc::new(Faulty(fault))) });
    (Gateway::new(&config.server, routes.collect(), Arc::new(Faulty(fault)), Arc::clone(&metrics)), metrics)
}

/// Sends one delivery, and gives back the answer's head.
async fn deliver(gateway: &Gateway) -> String {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    near.write_all(b"POST /faulty HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{\"id\":\"1\"}")
        .await
        .expect("sent");
    let passing = pingora_proxy::http_proxy(&Arc::default(), Passing::new(Arc::clone(&gateway.core)));
    let door = Door::new(Arc::clone(&gateway.core), passing);
    door.serve(Box::new(far)).await;
    let mut answer = String::new();
    near.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn a_panic_answers_500_is_counted_and_leaves_the_gateway_serving() {
    for fault in [Fault::Verify, Fault::Extract, Fault::Store] {
        let (gateway, metrics) = gateway(fault);
        for count in 1..=2 {
            let answer = deliver(&gateway).await;
            assert!(answer.starts_with("HTTP/1.1 500 "), "{fault:?}: {answer}");
            assert!(answer.contains("internal error") && !answer.contains("planted"), "{fault:?}: {answer}");
            assert!(metrics.render().contains(&format!("hookonce_panics_total {count}\n")), "{fault:?}");
        }
    }
}
