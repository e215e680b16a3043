//! Whether a Redis is one to work with: durable, reachable with this URL and password.

use std::time::Instant;

use hookonce::claim::{Found, Token};
use hookonce::config::{Persistence, Secret, Store};
use hookonce::store::StoreError;

use crate::asking::{TERMS, claim, delivered, key, release, renew, settle};
use crate::redis_outages::{SHORT, claim_when_it_is_back, try_claim};
use crate::redis_server::{PATIENCE, RedisServer, config_for};
use crate::{open, open_redis};

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
