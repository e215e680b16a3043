//! The exchange does not depend on the provider's connection.

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Gate, Upstream};

type HangUp = fn(Line);

/// The two ways in which a provider hangs up.
const HANGING_UP: [(&str, HangUp); 2] = [("reset", Line::reset), ("closed", drop)];

#[test]
fn hanging_up_mid_exchange_leaves_the_work_done_and_the_retry_a_duplicate() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        for (count, (name, hang_up)) in (1..).zip(HANGING_UP) {
            let gate = Gate::closed();
            upstream.script([Answer::status(200).behind(&gate)]);
            let delivery = provider::stripe(&format!("evt_{name}"));
            let line = gateway.begin(&delivery);
            upstream.wait_for(count);
            hang_up(line);
            gate.open();
            gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"delivered\"}", count as f64);
            gateway.send(&delivery).expect(200, "duplicate");
            assert_eq!(upstream.count(), count, "{name}");
        }
        gateway.wait_for_in_flight(0);
    });
}

#[test]
fn hanging_up_before_a_refusal_leaves_the_retry_free() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let gate = Gate::closed();
        upstream.script([Answer::status(500).behind(&gate)]);
        let delivery = provider::stripe("evt_reset_then_refused");
        let line = gateway.begin(&delivery);
        upstream.wait_for(1);
        line.reset();
        gate.open();
        gateway.wait_for_metric("hookonce_exchanges_total{outcome=\"refused\"}", 1.0);
        // A retry that comes before the refusal is settled is one more copy, and is told the same.
        eventually("the retry is forwarded", || {
            let answer = gateway.send(&delivery);
            assert_ne!(answer.result(), "duplicate", "the handler has not taken it");
            (answer.status == 200).then_some(())
        });
        assert_eq!(upstream.count(), 2);
    });
}

#[test]
fn hanging_up_inside_the_body_sends_nothing_and_claims_nothing() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let delivery = provider::stripe("evt_half");
        for (_, hang_up) in HANGING_UP {
            let mut line = Line::open(gateway.address());
            line.write(&delivery.head_bytes());
            line.write(&delivery.body()[..20]);
            hang_up(line);
        }
        gateway.wait_for_in_flight(0);
        gateway.send(&delivery).expect(200, "first");
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn hanging_up_while_waiting_for_another_copy_changes_nothing() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::stripe(upstream.address).with("in_flight: {wait: 20s}")]);
    let gate = Gate::closed();
    upstream.script([Answer::status(200).behind(&gate)]);
    let delivery = provider::stripe("evt_waiter_gone");
    let mut first = gateway.begin(&delivery);
    upstream.wait_for(1);
    let waiters = [gateway.begin(&delivery), gateway.begin(&delivery)];
    gateway.wait_for_in_flight(3);
    waiters.into_iter().for_each(Line::reset);
    gate.open();
    first.finish().expect(200, "first");
    gateway.send(&delivery).expect(200, "duplicate");
    assert_eq!(upstream.count(), 1);
}
