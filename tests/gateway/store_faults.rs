//! A store that answers and still cannot be relied on, and stores that refuse to open.

use std::process::Output;

use crate::support::eventually;
use crate::support::gateway::{Gateway, Site};
use crate::support::provider;
use crate::support::redis::Redis;
use crate::support::route::Route;
use crate::support::store::Store;
use crate::support::upstream::{Answer, Gate, Upstream};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_full_redis_still_tells_duplicates_and_takes_settlements() {
    let store = Store::redis();
    let redis = store.as_redis().expect("Redis");
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).with("lease: 3s")]);
    let (known, open, unseen) =
        (provider::stripe("evt_known"), provider::stripe("evt_open"), provider::stripe("evt_unseen"));
    gateway.send(&known).expect(200, "first");
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let mut first = gateway.begin(&open);
    upstream.wait_for(2);

    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    gateway.send(&known).expect(200, "duplicate");
    gateway.send(&unseen).expect(503, "store-unavailable");
    let renewals = gateway.metric("hookonce_store_seconds_count{operation=\"renew\"}");
    eventually("two more renewals in a full Redis", || {
        (gateway.metric("hookonce_store_seconds_count{operation=\"renew\"}") >= renewals + 2.0).then_some(())
    });
    gate.open();
    first.finish().expect(200, "first");
    gateway.wait_for_metric("hookonce_unsettled", 0.0);
    assert!(redis.get("dedup:stripe:evt_open").expect("a record").starts_with("1d:"));
    gateway.send(&open).expect(200, "duplicate");
    assert_eq!(upstream.count(), 2);
    assert_eq!(gateway.metric("hookonce_leases_lost_total"), 0.0);

    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    eventually("the event passes", || (gateway.send(&unseen).status == 200).then_some(()));
}

#[test]
fn a_read_only_redis_is_unavailable_for_what_is_new_and_still_tells_duplicates() {
    let store = Store::redis();
    let redis = store.as_redis().expect("Redis");
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
    let (known, unseen) = (provider::stripe("evt_known"), provider::stripe("evt_unseen"));
    gateway.send(&known).expect(200, "first");
    // A replica of a server that is not there: its data stays, and it takes no writes.
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
    gateway.send(&unseen).expect(503, "store-unavailable");
    gateway.send(&known).expect(200, "duplicate");
    assert_eq!(upstream.count(), 1);
    redis.command(&["REPLICAOF", "NO", "ONE"]);
    eventually("the event passes", || (gateway.send(&unseen).status == 200).then_some(()));
    assert_eq!(upstream.count(), 2);
}

#[test]
fn a_value_of_another_version_is_neither_a_duplicate_nor_first_seen() {
    let store = Store::redis();
    let redis = store.as_redis().expect("Redis");
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
    redis.command(&["SET", "dedup:stripe:evt_odd", "9z:what", "PX", "600000"]);
    gateway.send(&provider::stripe("evt_odd")).expect(503, "store-unavailable");
    assert_eq!(upstream.count(), 0);
    assert_eq!(redis.get("dedup:stripe:evt_odd").as_deref(), Some("9z:what"));
    assert!(gateway.metric("hookonce_store_errors_total{operation=\"claim\",kind=\"unreadable\"}") >= 1.0);
}

#[test]
fn a_redis_that_forgets_is_refused_at_the_start_with_the_setting_to_change() {
    let evicting = Redis::start();
    evicting.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    evicting.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    for (redis, setting) in [(Redis::start_forgetful(), "appendonly"), (evicting, "maxmemory-policy")] {
        let store = Store::over(redis, &[]);
        let upstream = Upstream::start();
        let output = Site::new(&store, &[], &[Route::stripe(upstream.address)]).run_to_its_end();
        let said = stderr(&output);
        assert!(!output.status.success());
        assert!(said.contains("error: ") && said.contains(setting), "{setting} is not named in:\n{said}");
    }
}

#[test]
fn a_redis_that_forgets_is_shown_in_a_gauge_where_that_is_enough() {
    for (persistence, durable) in [("warn", Some(0.0)), ("off", None)] {
        let store = Store::over(Redis::start_forgetful(), &[&format!("persistence: {persistence}")]);
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        gateway.send(&provider::stripe("evt_anyway")).expect(200, "first");
        if let Some(durable) = durable {
            gateway.wait_for_metric("hookonce_store_durable", durable);
            gateway.wait_for_log(&["appendonly"]);
        }
    }
}

#[test]
fn a_redis_that_comes_back_forgetful_is_unavailable_until_it_persists() {
    let store = Store::redis();
    let redis = store.as_redis().expect("Redis");
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
    gateway.send(&provider::stripe("evt_before")).expect(200, "first");
    redis.command(&["CONFIG", "SET", "appendonly", "no"]);
    redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let delivery = provider::stripe("evt_after");
    eventually("the store is found not to be durable", || {
        let answer = gateway.send(&provider::stripe("evt_probe"));
        (answer.result() == "store-unavailable" && gateway.metric("hookonce_store_durable") == 0.0).then_some(())
    });
    let before = upstream.count();
    gateway.send(&delivery).expect(503, "store-unavailable");
    assert_eq!(upstream.count(), before);
    redis.command(&["CONFIG", "SET", "appendonly", "yes"]);
    eventually("the event passes", || (gateway.send(&delivery).status == 200).then_some(()));
}

#[test]
fn a_redis_that_comes_back_without_its_data_is_noticed_logged_and_counted() {
    let store = Store::redis();
    let redis = store.as_redis().expect("Redis");
    let upstream = Upstream::start();
    let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
    let delivery = provider::stripe("evt_lost");
    gateway.send(&delivery).expect(200, "first");
    let settled = |result: &str| {
        eventually("a store that answers", || {
            let answer = gateway.send(&delivery);
            (answer.status == 200).then(|| assert_eq!(answer.result(), result))
        });
    };
    for (lose, result, losses) in [(false, "duplicate", 0.0), (true, "first", 1.0), (false, "duplicate", 1.0)] {
        redis.kill();
        if lose {
            redis.forget_everything();
        }
        redis.start_again();
        settled(result);
        assert_eq!(gateway.metric("hookonce_store_losses_total"), losses);
    }
    gateway.wait_for_log(&["ERROR", "lost records"]);
}

#[test]
fn a_second_gateway_on_one_embedded_file_is_refused() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address)]);
    let second = Site::new(&Store::Embedded, &[], &[Route::stripe(upstream.address)]);
    let text = std::fs::read_to_string(second.config()).expect("a configuration");
    let file = gateway.site.folder().join("hookonce.db");
    std::fs::write(second.config(), text.replace("./hookonce.db", &file.display().to_string())).expect("written");
    let output = second.run_to_its_end();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("error: "), "{}", stderr(&output));
    gateway.send(&provider::stripe("evt_undisturbed")).expect(200, "first");
}
