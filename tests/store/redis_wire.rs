//! What goes over the wire, and what lies in Redis.

use std::sync::Arc;

use hookonce::claim::{Found, Token};
use hookonce::config::Store;
use hookonce::event::EventKey;
use hookonce::store::StoreError;

use crate::asking::{TERMS, claim, delivered, key, settle};
use crate::redis_outages::claim_when_it_is_back;
use crate::redis_server::{RedisServer, config_for};
use crate::round_trips::RoundTrips;
use crate::{open, open_redis};

#[tokio::test]
async fn scripts_that_redis_has_lost_are_given_to_it_again() {
    let server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    let (one, two, owner) = (key(), key(), Token::fresh());
    for key in [&one, &two] {
        claim(&*store, key, &owner, TERMS).await;
    }
    let _: () = server.say(&["SCRIPT", "FLUSH"]);
    let answers = store.release(&[one.clone(), key(), two], &owner).await;
    assert!(matches!(answers.as_slice(), [Ok(true), Ok(false), Ok(true)]), "{answers:?}");
    assert_eq!(store.look(&one, TERMS).await.unwrap(), None);
}

#[tokio::test]
async fn a_value_of_another_version_is_unavailable_for_its_key_only() {
    let server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    let [newer, list, fine] = std::array::from_fn(|_| key());
    let _: () = server.say(&["SET", &format!("dedup:{newer}"), "9z:what"]);
    let _: i64 = server.say(&["RPUSH", &format!("dedup:{list}"), "1"]);
    let answers = store.claim(&[newer.clone(), list, fine], &Token::fresh(), TERMS).await;
    let expected =
        matches!(answers.as_slice(), [Err(StoreError::Unreadable(_)), Err(StoreError::Refused(_)), Ok(Found::Claimed)]);
    assert!(expected, "{answers:?}");
    assert!(matches!(store.look(&newer, TERMS).await, Err(StoreError::Unreadable(_))));
}

#[tokio::test]
async fn a_person_finds_the_key_in_redis_with_its_window() {
    let server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    let key = EventKey::new("hotmart", [Some("e8f9a0b1")]);
    settle(&*store, &key, delivered(200), TERMS.window).await;
    assert_eq!(server.say::<String>(&["GET", "dedup:hotmart:e8f9a0b1"]), "1d:1760000000123:200");
    let left: i64 = server.say(&["TTL", "dedup:hotmart:e8f9a0b1"]);
    assert!((3500..=3600).contains(&left), "{left} s left");
}

#[tokio::test]
async fn a_batch_is_one_round_trip_and_a_large_one_a_look_before_it() {
    let server = RedisServer::start(&[]);
    let link = RoundTrips::to(server.port());
    let store = open_redis(config_for(link.port)).await;
    let (owner, other) = (Token::fresh(), Token::fresh());
    let keys: Vec<EventKey> = (0..50).map(|_| key()).collect();
    let few: Vec<EventKey> = (0..20).map(|_| key()).collect();
    claim(&*store, &key(), &owner, TERMS).await;

    let before = link.count();
    let turns = |operation: &str, expected: usize, before: usize| {
        assert_eq!(link.count() - before, expected, "round trips for: {operation}");
        link.count()
    };
    assert!(store.claim(&few, &owner, TERMS).await.iter().all(|answer| matches!(answer, Ok(Found::Claimed))));
    let before = turns("claiming 20 absent keys", 1, before);
    assert!(store.claim(&few, &other, TERMS).await.iter().all(|answer| matches!(answer, Ok(Found::Held))));
    let before = turns("finding 20 held keys", 1, before);
    assert!(store.claim(&keys, &owner, TERMS).await.iter().all(|answer| matches!(answer, Ok(Found::Claimed))));
    let before = turns("claiming 50 absent keys", 2, before);
    assert!(store.claim(&keys, &other, TERMS).await.iter().all(|answer| matches!(answer, Ok(Found::Held))));
    let before = turns("finding 50 held keys", 2, before);
    assert!(store.renew(&keys, &owner, TERMS).await.iter().all(Result::is_ok));
    let before = turns("renewing 50 claims", 1, before);
    assert!(store.release(&keys[..10], &owner).await.iter().all(Result::is_ok));
    let before = turns("releasing 10 claims", 1, before);
    let done: Vec<_> = keys.iter().map(|key| (key.clone(), delivered(200), TERMS.window)).collect();
    assert!(store.settle_done(&done).await.iter().all(Result::is_ok));
    let before = turns("settling 50 keys", 1, before);
    assert!(store.claim(&keys, &other, TERMS).await.iter().all(|answer| matches!(answer, Ok(Found::Done(_)))));
    let before = turns("finding 50 duplicates", 1, before);
    let half_known = [&keys[..25], &few[..], &[key()]].concat();
    let found = store.claim(&half_known, &other, TERMS).await;
    let before = turns("a large batch that is known in part", 2, before);
    assert!(found[..25].iter().all(|answer| matches!(answer, Ok(Found::Done(_)))), "{found:?}");
    assert!(found[25..45].iter().all(|answer| matches!(answer, Ok(Found::Held))), "{found:?}");
    assert!(matches!(found[45], Ok(Found::Claimed)), "{found:?}");

    claim(&*store, &keys[0], &other, TERMS).await;
    let sending = key();
    claim(&*store, &sending, &owner, TERMS).await;
    assert!(store.promote(&sending, &owner, TERMS.window).await.unwrap());
    let before = turns("two claims and a promotion", 3, before);
    let mixed = [keys[0].clone(), key(), sending];
    let found = store.claim(&mixed, &other, TERMS).await;
    assert!(matches!(found.as_slice(), [Ok(Found::Done(_)), Ok(Found::Claimed), Ok(Found::Held)]), "{found:?}");
    turns("a batch with a sending key, whose time is looked up", 2, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_many_deliveries_have_to_say_at_one_moment_leaves_in_one_write() {
    let server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    // Each thread has a connection of its own, and this one is not the one that serves.
    let opening = Arc::clone(&store);
    tokio::spawn(async move { claim(&*opening, &key(), &Token::fresh(), TERMS).await }).await.unwrap();
    let reads = || -> usize {
        let info: String = server.say(&["INFO", "stats"]);
        let count = info.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        count.unwrap().trim().parse().unwrap()
    };

    let before = reads();
    let deliveries = tokio::spawn(async move {
        let each = |_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { claim(&*store, &key(), &Token::fresh(), TERMS).await })
        };
        futures_util::future::join_all((0..64).map(each)).await
    });
    let found = deliveries.await.unwrap();
    assert!(found.into_iter().all(|found| matches!(found, Ok(Found::Claimed))));
    // A few are of this test's own questions; one for each claim would be 64.
    let reads = reads() - before;
    assert!(reads <= 12, "Redis was written to {reads} times");
}

#[tokio::test]
async fn a_store_outlives_the_runtime_it_was_opened_in() {
    let server = RedisServer::start(&[]);
    let config = Store::Redis(server.config());
    let opening = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(open(config)).unwrap()
    });
    let store = opening.join().unwrap();
    let key = key();

    // The same for one whose connection was made in a runtime that has gone since.
    let (used, claimed) = (Arc::clone(&store), key.clone());
    let elsewhere = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(claim(&*used, &claimed, &Token::fresh(), TERMS))
    });
    assert_eq!(elsewhere.join().unwrap(), Found::Claimed);
    assert_eq!(claim_when_it_is_back(&*store, &key).await, Found::Held);
}
