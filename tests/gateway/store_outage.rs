//! A Redis that is not there: unavailable, never "duplicate" and never "first seen".

use std::time::{Duration, Instant};

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::provider;
use crate::support::redis::Redis;
use crate::support::route::Route;
use crate::support::store::Store;
use crate::support::upstream::{Absent, Answer, Gate, Upstream};

/// The store's time-out is 500 ms; the rest is for slow machines.
const PROMPT: Duration = Duration::from_secs(4);

type Act = fn(&Redis);

/// How Redis goes away, and how it comes back.
const OUTAGES: [(&str, Act, Act); 2] =
    [("killed", Redis::kill, Redis::start_again), ("frozen", Redis::freeze, Redis::thaw)];

fn redis_of(store: &Store) -> &Redis {
    store.as_redis().expect("Redis")
}

#[test]
fn without_redis_nothing_is_sent_and_the_answer_is_503_in_time() {
    for (name, end, begin) in OUTAGES {
        let store = Store::redis();
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let known = provider::stripe("evt_known");
        gateway.send(&known).expect(200, "first");
        end(redis_of(&store));
        let unseen = provider::stripe("evt_unseen");
        for delivery in [&known, &unseen, &unseen] {
            let asked = Instant::now();
            let answer = gateway.send(delivery).expect(503, "store-unavailable");
            assert!(answer.header("retry-after").is_some());
            assert!(asked.elapsed() < PROMPT, "{name}: {:?}", asked.elapsed());
        }
        assert_eq!(upstream.count(), 1, "{name}");
        gateway.wait_for_metric("hookonce_store_up", 0.0);
        assert_eq!(gateway.admin("/readyz").status, 200, "a store outage must not take the pod out of service");

        begin(redis_of(&store));
        // Claims that a frozen Redis carries out late are released, so the event soon passes.
        eventually("the event passes", || {
            let answer = gateway.send(&unseen);
            assert_ne!(answer.result(), "duplicate", "{name}: it never reached the handler");
            (answer.status == 200).then_some(())
        });
        gateway.send(&unseen).expect(200, "duplicate");
        gateway.send(&known).expect(200, "duplicate");
        assert_eq!(upstream.count(), 2, "{name}");
        gateway.wait_for_metric("hookonce_store_up", 1.0);
    }
}

#[test]
fn without_redis_deliveries_are_forwarded_and_counted_where_the_route_says_so() {
    let store = Store::redis();
    let upstream = Upstream::start();
    upstream.otherwise(Answer::with_body(201, b"made"));
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).with("store_down: forward")]);
    redis_of(&store).kill();
    for (count, id) in [(1, "evt_forwarded"), (2, "evt_forwarded_too")] {
        let delivery = provider::stripe(id);
        assert_eq!(gateway.send(&delivery).expect(201, "store-unavailable").text(), "made");
        assert_eq!(upstream.count(), count);
        assert_eq!(upstream.wait_for(count).body, delivery.body());
    }
    // What this gateway has delivered and not recorded yet, it remembers itself.
    gateway.send(&provider::stripe("evt_forwarded")).expect(200, "duplicate");
    assert_eq!(upstream.count(), 2);
    gateway.wait_for_metric("hookonce_deliveries_total{result=\"store-unavailable\"}", 2.0);
}

#[test]
fn forged_deliveries_stay_out_while_redis_is_gone() {
    let store = Store::redis();
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).with("store_down: forward")]);
    redis_of(&store).kill();
    let forged = provider::Request::post("/webhooks/stripe", provider::stripe_body("evt_forged"));
    gateway.send(&forged).expect(401, "unauthorized");
    assert_eq!(upstream.count(), 0);
}

#[test]
fn a_redis_that_is_not_there_yet_is_no_reason_not_to_start() {
    let store = Store::redis();
    redis_of(&store).kill();
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_early");
    gateway.send(&delivery).expect(503, "store-unavailable");
    redis_of(&store).start_again();
    eventually("the event passes", || (gateway.send(&delivery).status == 200).then_some(()));
    gateway.send(&delivery).expect(200, "duplicate");
    assert_eq!(upstream.count(), 1);
}

#[test]
fn delivered_while_redis_is_gone_stands_and_is_recorded_later() {
    for (name, end, begin) in OUTAGES {
        let store = Store::redis();
        let redis = redis_of(&store);
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.script([Answer::with_body(201, b"made").behind(&gate)]);
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let delivery = provider::stripe("evt_unrecorded");
        let mut first = gateway.begin(&delivery);
        upstream.wait_for(1);
        end(redis);
        gate.open();
        assert_eq!(first.finish().expect(201, "first").text(), "made", "{name}");
        gateway.wait_for_metric("hookonce_unsettled", 1.0);
        for _ in 0..3 {
            gateway.send(&delivery).expect(200, "duplicate");
        }
        begin(redis);
        gateway.wait_for_metric("hookonce_unsettled", 0.0);
        let value = redis.get("dedup:stripe:evt_unrecorded").expect("a record");
        assert!(value.starts_with("1d:") && value.ends_with(":201"), "{name}: {value}");
        gateway.send(&delivery).expect(200, "duplicate");
        assert_eq!(upstream.count(), 1, "{name}");
    }
}

/// An address behind which packets get lost: connecting takes for ever.
#[test]
fn a_redis_that_cannot_even_be_connected_to_is_unavailable_in_time() {
    let deaf = Absent::new().appear_deaf();
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Behind(deaf.address()), &[Route::stripe(upstream.address)]);
    let asked = Instant::now();
    for _ in 0..2 {
        gateway.send(&provider::stripe("evt_nowhere")).expect(503, "store-unavailable");
    }
    assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    assert_eq!(upstream.count(), 0);
}

/// While it reads its append-only file, a Redis answers everything with `LOADING`, and says that it has no such file.
#[test]
fn a_redis_that_is_still_loading_is_unavailable_and_no_reason_not_to_start() {
    let settings = ["--appendonly", "yes", "--appendfsync", "always", "--key-load-delay", "250"];
    let store = Store::over(Redis::start_with(&settings), &[]);
    let redis = redis_of(&store);
    redis.command(&["EVAL", "for n = 1, 12000 do redis.call('SET', 'key' .. n, 'x') end", "0"]);
    redis.kill();
    redis.begin_to_start_again();
    eventually("a Redis that is loading", || redis.is_loading().then_some(()));
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_patient");
    gateway.send(&delivery).expect(503, "store-unavailable");
    assert!(redis.is_loading(), "it was over before it was asked");
    eventually("the event passes", || (gateway.send(&delivery).status == 200).then_some(()));
    assert!(!gateway.log().contains("append-only"), "{}", gateway.log());
    assert_eq!(upstream.count(), 1);
}
