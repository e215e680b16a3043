//! A store that does not answer in time, and what is counted of one that does.

use super::*;

const TERMS: Terms = Terms { lease: Duration::from_secs(30), window: Duration::from_secs(3600) };

/// Answers everything with this error, or nothing ever.
struct Broken(Option<StoreError>);

impl Broken {
    async fn answer<T>(&self) -> Result<T, StoreError> {
        match &self.0 {
            Some(error) => Err(error.clone()),
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl ClaimStore for Broken {
    async fn claim(&self, _: &[EventKey], _: &Token, _: Terms) -> Vec<Result<Found, StoreError>> {
        vec![self.answer().await, Ok(Found::Held)]
    }
    async fn settle_done(&self, _: &[(EventKey, Record, Duration)]) -> Vec<Result<(), StoreError>> {
        vec![self.answer().await]
    }
    async fn settle_unknown(&self, _: &EventKey, _: &Token, _: Record, _: Duration) -> Result<bool, StoreError> {
        self.answer().await
    }
    async fn release(&self, _: &[EventKey], _: &Token) -> Vec<Result<bool, StoreError>> {
        vec![self.answer().await]
    }
    async fn renew(&self, _: &[EventKey], _: &Token, _: Terms) -> Vec<Result<bool, StoreError>> {
        vec![self.answer().await]
    }
    async fn promote(&self, _: &EventKey, _: &Token, _: Duration) -> Result<bool, StoreError> {
        self.answer().await
    }
    async fn look(&self, _: &EventKey, _: Terms) -> Result<Option<Standing>, StoreError> {
        self.answer().await
    }
    async fn forget(&self, _: &EventKey, _: Terms, _: bool) -> Result<Forgotten, StoreError> {
        self.answer().await
    }
    async fn health(&self) -> Health {
        let fault = self.answer::<()>().await.err().map(|error| error.to_string());
        Health { up: false, durable: None, fault }
    }
}

fn around(error: Option<StoreError>) -> (Observed<Broken>, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::new("test").unwrap());
    (Observed::new(Broken(error), Duration::from_millis(20), Arc::clone(&metrics)), metrics)
}

fn keys(count: usize) -> Vec<EventKey> {
    (0..count).map(|number| EventKey::new("test", [Some(&*number.to_string())])).collect()
}

#[tokio::test]
async fn every_operation_times_out_with_one_answer_per_key() {
    let (store, metrics) = around(None);
    let (token, key) = (Token::fresh(), &keys(1)[0]);
    let record = Record { at: None, result: crate::claim::Recorded::Unknown };
    let done: Vec<_> = keys(3).into_iter().map(|key| (key, record, TERMS.window)).collect();

    let silent = |error: &StoreError| matches!(error, StoreError::TimedOut);
    let claimed = store.claim(&keys(3), &token, TERMS).await;
    assert!(claimed.len() == 3 && claimed.iter().all(|answer| answer.as_ref().is_err_and(silent)));
    let settled = store.settle_done(&done).await;
    assert!(settled.len() == 3 && settled.iter().all(|answer| answer.as_ref().is_err_and(silent)));
    for answers in [store.release(&keys(3), &token).await, store.renew(&keys(3), &token, TERMS).await] {
        assert!(answers.len() == 3 && answers.iter().all(|answer| answer.as_ref().is_err_and(silent)));
    }
    assert!(store.settle_unknown(key, &token, record, TERMS.window).await.is_err_and(|error| silent(&error)));
    assert!(store.promote(key, &token, TERMS.window).await.is_err_and(|error| silent(&error)));
    assert!(store.look(key, TERMS).await.is_err_and(|error| silent(&error)));
    assert!(store.forget(key, TERMS, true).await.is_err_and(|error| silent(&error)));
    assert!(!store.health().await.up);

    let rendered = metrics.render();
    for (operation, count) in [
        ("claim", 1),
        ("settle", 2),
        ("release", 1),
        ("renew", 1),
        ("promote", 1),
        ("look", 1),
        ("forget", 1),
        ("health", 1),
    ] {
        let line = format!("hookonce_store_errors_total{{kind=\"timeout\",operation=\"{operation}\"}} {count}");
        assert!(rendered.lines().any(|it| it == line), "`{line}` is not in\n{rendered}");
    }
    assert!(rendered.lines().any(|line| line == "hookonce_store_up 0"));
}

#[tokio::test]
async fn an_error_for_one_key_counts_as_one_and_leaves_the_other_answers() {
    let (store, metrics) = around(Some(StoreError::Refused("OOM".into())));
    let answers = store.claim(&keys(2), &Token::fresh(), TERMS).await;
    assert!(matches!(answers.as_slice(), [Err(StoreError::Refused(_)), Ok(Found::Held)]));
    let rendered = metrics.render();
    let has = |line: &str| rendered.lines().any(|it| it == line);
    assert!(has("hookonce_store_errors_total{kind=\"refused\",operation=\"claim\"} 1"), "{rendered}");
    assert!(has("hookonce_store_up 1"), "a store that refuses does answer");
}

#[tokio::test]
async fn nothing_is_asked_for_no_keys() {
    let (store, _) = around(None);
    assert!(store.claim(&[], &Token::fresh(), TERMS).await.is_empty());
}
