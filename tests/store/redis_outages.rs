//! A Redis that is down, killed, frozen, full or demoted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookonce::claim::{Found, Token};
use hookonce::event::EventKey;
use hookonce::store::{ClaimStore, StoreError};

use crate::asking::{TERMS, claim, delivered, key, release, renew, settle, unknown};
use crate::open_redis;
use crate::redis_server::{PATIENCE, RedisServer, config_for, free_port};

/// A time-out to wait for.
pub const SHORT: Duration = Duration::from_millis(500);

pub async fn try_claim(store: &dyn ClaimStore, key: &EventKey, token: &Token) -> Result<Found, StoreError> {
    store.claim(std::slice::from_ref(key), token, TERMS).await.remove(0)
}

/// Claims until it is answered; what was asked before may have been carried out late, so one token asks.
pub async fn claim_when_it_is_back(store: &dyn ClaimStore, key: &EventKey) -> Found {
    let (token, deadline) = (Token::fresh(), Instant::now() + PATIENCE);
    loop {
        match try_claim(store, key, &token).await {
            Ok(found) => return found,
            Err(error) => assert!(Instant::now() < deadline, "still {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_redis_that_is_not_there_yet_is_unavailable_until_it_is() {
    let port = free_port();
    let store = open_redis(config_for(port)).await;
    let found = try_claim(&*store, &key(), &Token::fresh()).await;
    assert!(matches!(found, Err(StoreError::Unreachable(_))), "{found:?}");
    let health = store.health().await;
    assert!(!health.up && health.fault.is_some(), "{health:?}");

    let _server = RedisServer::start_on(port, &[]);
    assert_eq!(claim_when_it_is_back(&*store, &key()).await, Found::Claimed);
    assert!(store.health().await.up);
}

#[tokio::test]
async fn a_connection_that_redis_has_closed_costs_no_operation() {
    let server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    let (first, second, owner) = (key(), key(), Token::fresh());
    assert_eq!(claim(&*store, &first, &owner, TERMS).await, Found::Claimed);
    server.say::<i64>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert_eq!(claim(&*store, &second, &owner, TERMS).await, Found::Claimed);
    server.say::<i64>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    settle(&*store, &second, delivered(200), TERMS.window).await;
    server.say::<i64>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert!(release(&*store, &first, &owner).await);
}

#[tokio::test]
async fn what_is_done_survives_a_kill_and_the_store_finds_back() {
    let mut server = RedisServer::start(&["--appendfsync", "always"]);
    let store = open_redis(server.config()).await;
    let (done, held, owner) = (key(), key(), Token::fresh());
    settle(&*store, &done, delivered(200), TERMS.window).await;
    assert_eq!(claim(&*store, &held, &owner, TERMS).await, Found::Claimed);

    server.kill();
    for _ in 0..3 {
        let asked = Instant::now();
        let answers = store.claim(&[done.clone(), held.clone()], &Token::fresh(), TERMS).await;
        assert!(matches!(answers.as_slice(), [Err(StoreError::Unreachable(_)), Err(_)]), "{answers:?}");
        assert!(asked.elapsed() < SHORT, "a dead Redis was waited for");
    }

    server.restart();
    assert_eq!(claim_when_it_is_back(&*store, &done).await, Found::Done(delivered(200)));
    assert_eq!(claim_when_it_is_back(&*store, &held).await, Found::Held);
    assert!(release(&*store, &held, &owner).await);
}

#[tokio::test]
async fn a_frozen_redis_is_unavailable_within_the_time_out_and_gets_a_fresh_connection() {
    let server = RedisServer::start(&[]);
    let mut config = server.config();
    config.timeout = SHORT;
    let store = open_redis(config).await;
    let done = key();
    settle(&*store, &done, delivered(200), TERMS.window).await;
    let before = connections(&server);
    assert_eq!(before.len(), 1, "one connection is shared");

    server.freeze();
    let (late, token) = (key(), Token::fresh());
    for _ in 0..3 {
        let asked = Instant::now();
        let found = try_claim(&*store, &late, &token).await;
        assert!(matches!(found, Err(StoreError::TimedOut | StoreError::Unreachable(_))), "{found:?}");
        assert!(asked.elapsed() < SHORT + SHORT, "took {:?}", asked.elapsed());
    }
    server.thaw();

    assert_eq!(claim_when_it_is_back(&*store, &done).await, Found::Done(delivered(200)));
    assert!(!connections(&server).contains(&before[0]), "the connection that timed out is still in use");
    // The claim that timed out may have been carried out since. Whose it is, is clear.
    assert_eq!(try_claim(&*store, &late, &token).await.unwrap(), Found::Claimed);
    assert!(release(&*store, &late, &token).await);
}

/// The connections that the server has, apart from the one that asks.
fn connections(server: &RedisServer) -> Vec<String> {
    let clients: String = server.say(&["CLIENT", "LIST", "TYPE", "normal"]);
    let others = clients.lines().filter(|line| !line.contains("cmd=client"));
    others.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_dead_redis_is_not_hammered() {
    let mut server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    claim(&*store, &key(), &Token::fresh(), TERMS).await;
    server.kill();
    // Stands in the place of the dead server, and hangs up on whoever comes.
    let listener = std::net::TcpListener::bind(("127.0.0.1", server.port())).unwrap();
    let knocks = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&knocks);
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            drop(caller);
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let begun = Instant::now();
    for _ in 0..500 {
        assert!(try_claim(&*store, &key(), &Token::fresh()).await.is_err());
    }
    let knocks = knocks.load(std::sync::atomic::Ordering::SeqCst);
    let allowed = 2 + begun.elapsed().as_millis() / 100;
    assert!(knocks as u128 <= allowed, "{knocks} attempts in {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_full_redis_refuses_claims_and_takes_all_that_ends_them() {
    let server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    let [done, held, sending, delivers, frees, doubts, renews, absent] = std::array::from_fn(|_| key());
    let (owner, other) = (Token::fresh(), Token::fresh());
    settle(&*store, &done, delivered(200), TERMS.window).await;
    for key in [&held, &sending, &delivers, &frees, &doubts, &renews] {
        assert_eq!(claim(&*store, key, &owner, TERMS).await, Found::Claimed);
    }
    assert!(store.promote(&sending, &owner, TERMS.window).await.unwrap());

    let _: () = server.say(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let _: () = server.say(&["CONFIG", "SET", "maxmemory", "100000"]);

    let batch = [absent.clone(), done.clone(), held.clone(), sending.clone()];
    let answers = store.claim(&batch, &other, TERMS).await;
    assert!(matches!(&answers[0], Err(StoreError::Refused(error)) if error.contains("OOM")), "{answers:?}");
    assert!(matches!(&answers[1], Ok(Found::Done(record)) if *record == delivered(200)), "{answers:?}");
    assert!(matches!(&answers[2..], [Ok(Found::Held), Ok(Found::Held)]), "{answers:?}");
    let own = try_claim(&*store, &held, &owner).await;
    assert!(matches!(own, Err(StoreError::Refused(_))), "a claim that Redis does not take is none: {own:?}");

    assert!(renew(&*store, &renews, &owner, TERMS).await);
    assert!(store.promote(&held, &owner, TERMS.window).await.unwrap());
    settle(&*store, &delivers, delivered(201), TERMS.window).await;
    settle(&*store, &absent, delivered(202), TERMS.window).await;
    assert!(release(&*store, &frees, &owner).await);
    assert!(store.settle_unknown(&doubts, &owner, unknown(), TERMS.window).await.unwrap());
    assert_eq!(store.look(&frees, TERMS).await.unwrap(), None);
    assert_eq!(try_claim(&*store, &absent, &other).await.unwrap(), Found::Done(delivered(202)));
    assert_eq!(try_claim(&*store, &delivers, &other).await.unwrap(), Found::Done(delivered(201)));

    let _: () = server.say(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(try_claim(&*store, &frees, &other).await.unwrap(), Found::Claimed);
}

#[tokio::test]
async fn a_read_only_replica_tells_duplicates_and_claims_nothing() {
    let primary = RedisServer::start(&[]);
    let server = RedisServer::start(&[]);
    let (done, held, absent, owner) = (key(), key(), key(), Token::fresh());
    let before = open_redis(primary.config()).await;
    settle(&*before, &done, delivered(200), TERMS.window).await;
    claim(&*before, &held, &owner, TERMS).await;

    let store = open_redis(server.config()).await;
    claim(&*store, &key(), &Token::fresh(), TERMS).await;
    let _: () = server.say(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let deadline = Instant::now() + PATIENCE;
    while !server.say::<String>(&["INFO", "replication"]).contains("master_link_status:up") {
        assert!(Instant::now() < deadline, "the replica does not follow");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let batch = [done.clone(), held.clone(), absent.clone()];
    let answers = store.claim(&batch, &Token::fresh(), TERMS).await;
    assert!(matches!(&answers[..2], [Ok(Found::Done(_)), Ok(Found::Held)]), "{answers:?}");
    assert!(matches!(&answers[2], Err(StoreError::Refused(error)) if error.contains("READONLY")), "{answers:?}");
    let held = [held];
    for answer in [store.release(&held, &owner).await, store.renew(&held, &owner, TERMS).await] {
        assert!(matches!(answer.as_slice(), [Err(StoreError::Refused(_))]), "{answer:?}");
    }
    let settled = store.settle_done(&[(absent.clone(), delivered(200), TERMS.window)]).await;
    assert!(matches!(settled.as_slice(), [Err(StoreError::Refused(_))]), "{settled:?}");

    let before = connections(&server);
    while connections(&server) == before {
        assert!(Instant::now() < deadline, "the connection to a demoted server is kept");
        assert!(try_claim(&*store, &absent, &owner).await.is_err());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let connected = |info: &str| -> u128 {
        let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.and_then(|count| count.trim().parse().ok()).unwrap()
    };
    let (before, begun) = (connected(&server.say::<String>(&["INFO", "stats"])), Instant::now());
    for _ in 0..200 {
        assert!(try_claim(&*store, &absent, &owner).await.is_err());
    }
    let allowed = 3 + begun.elapsed().as_millis() / 100;
    let connections = connected(&server.say::<String>(&["INFO", "stats"])) - before;
    assert!(connections <= allowed, "{connections} connections in {:?}", begun.elapsed());

    let _: () = server.say(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(claim_when_it_is_back(&*store, &absent).await, Found::Claimed);
}
