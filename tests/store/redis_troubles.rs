//! A Redis that is down, frozen, full, read-only, forgetful, restarted, or asked too often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookonce::claim::{Found, Token};
use hookonce::config::{Persistence, Secret, Store};
use hookonce::event::EventKey;
use hookonce::store::{ClaimStore, StoreError};

use crate::promises::{TERMS, claim, delivered, key, release, renew, settle, unknown};
use crate::redis_server::{PATIENCE, RedisServer, config_for, free_port};
use crate::round_trips::RoundTrips;
use crate::{open, open_redis};

/// A time-out to wait for.
const SHORT: Duration = Duration::from_millis(500);

async fn try_claim(store: &dyn ClaimStore, key: &EventKey, token: &Token) -> Result<Found, StoreError> {
    store.claim(std::slice::from_ref(key), token, TERMS).await.remove(0)
}

/// Claims until it is answered; what was asked before may have been carried out late, so one token asks.
async fn claim_when_it_is_back(store: &dyn ClaimStore, key: &EventKey) -> Found {
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
    let _: () = server.say(&["CONFIG", "SET", "maxmemory", "1000000"]);

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
    for answer in [store.release(&[held.clone()], &owner).await, store.renew(&[held], &owner, TERMS).await] {
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

    let _: () = server.say(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(claim_when_it_is_back(&*store, &absent).await, Found::Claimed);
}

#[tokio::test]
async fn a_redis_that_would_forget_is_refused_at_the_start_under_require_only() {
    let evicts = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    for (case, settings, hints) in [
        ("no append-only file", &["--appendonly", "no"][..], &["`appendonly yes`"][..]),
        ("eviction", &evicts, &["`maxmemory-policy noeviction`"]),
        ("both", &[&evicts[..], &["--appendonly", "no"]].concat(), &["`appendonly yes`", "noeviction`"]),
        ("a policy without a limit", &["--maxmemory-policy", "allkeys-lru"], &[]),
        ("a limit without eviction", &["--maxmemory", "100mb"], &[]),
    ] {
        let server = RedisServer::start(settings);
        for persistence in [Persistence::Require, Persistence::Warn, Persistence::Off] {
            let mut config = server.config();
            config.persistence = persistence;
            match open(Store::Redis(config)).await {
                Err(refused) => {
                    assert!(persistence == Persistence::Require && !hints.is_empty(), "{case}: {refused}");
                    let hint = refused.hint.unwrap();
                    assert!(hints.iter().all(|setting| hint.contains(setting)), "{case}: `{hint}`");
                }
                Ok(store) => {
                    assert!(persistence != Persistence::Require || hints.is_empty(), "{case}: opened");
                    assert_eq!(claim(&*store, &key(), &Token::fresh(), TERMS).await, Found::Claimed, "{case}");
                    let durable = (persistence != Persistence::Off).then_some(hints.is_empty());
                    assert_eq!(store.health().await.durable, durable, "{case}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_redis_that_has_become_forgetful_takes_no_claims_until_it_is_durable_again() {
    let server = RedisServer::start(&[]);
    let store = open_redis(server.config()).await;
    let [first, second, promoted] = std::array::from_fn(|_| key());
    let owner = Token::fresh();
    for key in [&first, &promoted] {
        assert_eq!(claim(&*store, key, &owner, TERMS).await, Found::Claimed);
    }
    let _: () = server.say(&["CONFIG", "SET", "appendonly", "no"]);
    let _: i64 = server.say(&["CLIENT", "KILL", "TYPE", "normal"]);

    let deadline = Instant::now() + PATIENCE;
    // The first answer may still tell of the connection that was cut.
    let error = loop {
        match try_claim(&*store, &second, &owner).await {
            Err(StoreError::Unreachable(_)) if Instant::now() < deadline => {}
            Err(error) => break error,
            Ok(found) => panic!("claimed from a Redis that forgets: {found:?}"),
        }
    };
    assert!(matches!(&error, StoreError::NotDurable(fault) if fault.contains("`appendonly yes`")), "{error}");
    let promotion = store.promote(&promoted, &owner, TERMS.window).await;
    assert!(matches!(promotion, Err(StoreError::NotDurable(_))), "{promotion:?}");
    let health = store.health().await;
    assert!(health.up && health.durable == Some(false) && health.fault.is_some(), "{health:?}");
    assert!(renew(&*store, &first, &owner, TERMS).await);
    settle(&*store, &first, delivered(200), TERMS.window).await;
    assert!(release(&*store, &promoted, &owner).await);

    let _: () = server.say(&["CONFIG", "SET", "appendonly", "yes"]);
    assert_eq!(claim_when_it_is_back(&*store, &second).await, Found::Claimed);
}

#[tokio::test]
async fn a_user_that_may_not_ask_is_no_proof_of_a_fault() {
    let server = RedisServer::start(&["--appendonly", "no"]);
    let _: () = server.say(&["ACL", "SETUSER", "gateway", "on", ">secret", "~dedup:*", "+@all", "-info"]);
    let mut config = server.config();
    config.url = Secret::new(format!("redis://gateway@127.0.0.1:{}/0", server.port()));
    config.password = Some(Secret::new("secret"));
    let store = open_redis(config).await;
    assert_eq!(claim(&*store, &key(), &Token::fresh(), TERMS).await, Found::Claimed);
    let health = store.health().await;
    assert!(health.up && health.durable.is_none(), "{health:?}");
}

#[tokio::test]
async fn a_password_that_is_missing_or_wrong_is_told_at_the_start_and_not_shown() {
    let server = RedisServer::start(&["--requirepass", "right-password"]);
    for (password, opens) in [(None, false), (Some("wrong-password"), false), (Some("right-password"), true)] {
        let mut config = server.config();
        config.password = password.map(Secret::new);
        match open(Store::Redis(config)).await {
            Ok(store) => {
                assert!(opens, "opened with {password:?}");
                assert_eq!(claim(&*store, &key(), &Token::fresh(), TERMS).await, Found::Claimed);
            }
            Err(refused) => {
                assert!(!opens, "{refused}");
                assert!(!format!("{refused:?}").contains("wrong-password"), "{refused:?}");
                assert!(refused.hint.unwrap().contains("`store.redis.password`"));
            }
        }
    }
}

#[tokio::test]
async fn a_url_that_is_none_is_told_without_being_shown() {
    let mut config = config_for(1);
    config.url = Secret::new("http://:letmein@127.0.0.1/");
    let refused = open(Store::Redis(config)).await.err().unwrap();
    assert!(!format!("{refused:?}").contains("letmein"), "{refused:?}");
    assert!(refused.message.contains("`store.redis.url`") && refused.hint.is_some());
}

#[tokio::test]
async fn tls_is_spoken_where_the_url_says_so() {
    let server = RedisServer::start(&[]);
    let mut config = server.config();
    config.timeout = SHORT;
    config.url = Secret::new(format!("rediss://127.0.0.1:{}/0", server.port()));
    let store = open_redis(config).await;
    // This Redis speaks no TLS, so that nothing may be sent to it.
    let found = try_claim(&*store, &key(), &Token::fresh()).await;
    assert!(matches!(found, Err(StoreError::Unreachable(_) | StoreError::TimedOut)), "{found:?}");
    assert_eq!(server.say::<i64>(&["DBSIZE"]), 0);
}

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
async fn a_batch_is_one_round_trip() {
    let server = RedisServer::start(&[]);
    let link = RoundTrips::to(server.port());
    let store = open_redis(config_for(link.port)).await;
    let (owner, other) = (Token::fresh(), Token::fresh());
    let keys: Vec<EventKey> = (0..50).map(|_| key()).collect();
    claim(&*store, &key(), &owner, TERMS).await;

    let before = link.count();
    let turns = |operation: &str, expected: usize, before: usize| {
        assert_eq!(link.count() - before, expected, "round trips for: {operation}");
        link.count()
    };
    assert!(store.claim(&keys, &owner, TERMS).await.iter().all(Result::is_ok));
    let before = turns("claiming 50 absent keys", 1, before);
    assert!(store.claim(&keys, &other, TERMS).await.iter().all(|answer| matches!(answer, Ok(Found::Held))));
    let before = turns("finding 50 held keys", 1, before);
    assert!(store.renew(&keys, &owner, TERMS).await.iter().all(Result::is_ok));
    let before = turns("renewing 50 claims", 1, before);
    assert!(store.release(&keys[..10], &owner).await.iter().all(Result::is_ok));
    let before = turns("releasing 10 claims", 1, before);
    let done: Vec<_> = keys.iter().map(|key| (key.clone(), delivered(200), TERMS.window)).collect();
    assert!(store.settle_done(&done).await.iter().all(Result::is_ok));
    let before = turns("settling 50 keys", 1, before);
    assert!(store.claim(&keys, &other, TERMS).await.iter().all(|answer| matches!(answer, Ok(Found::Done(_)))));
    let before = turns("finding 50 duplicates", 1, before);

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
