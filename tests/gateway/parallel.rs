//! Copies that come at the same moment.

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Line};
use crate::support::route::Route;
use crate::support::store::{Store, on_both_stores};
use crate::support::upstream::{Answer, Gate, Upstream};

const COPIES: usize = 50;

#[test]
fn fifty_copies_at_once_make_one_exchange_and_fifty_answers_of_200() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).with("in_flight: {wait: 20s}")]);
        for round in 0..3 {
            let delivery = provider::stripe(&format!("evt_at_once_{round}"));
            let answers = provider::send_at_once(&[gateway.address()], &delivery, COPIES);
            assert!(answers.iter().all(|answer| answer.status == 200));
            let firsts = answers.iter().filter(|answer| answer.result() == "first").count();
            let duplicates = answers.iter().filter(|answer| answer.result() == "duplicate").count();
            assert_eq!((firsts, duplicates, upstream.count()), (1, COPIES - 1, round + 1));
        }
    });
}

#[test]
fn copies_that_wait_while_the_first_is_at_the_handler_are_duplicates_of_it() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.otherwise(Answer::status(200).behind(&gate));
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address).with("in_flight: {wait: 20s}")]);
        let delivery = provider::stripe("evt_waited_for");
        let mut lines: Vec<_> = (0..COPIES).map(|_| gateway.begin(&delivery)).collect();
        gateway.wait_for_in_flight(COPIES);
        gate.open();
        let answers: Vec<_> = lines.iter_mut().map(Line::finish).collect();
        assert!(answers.iter().all(|answer| answer.status == 200));
        assert_eq!(answers.iter().filter(|answer| answer.result() == "first").count(), 1);
        assert_eq!(upstream.count(), 1);
    });
}

#[test]
fn fifty_copies_over_two_gateways_on_one_redis_make_one_exchange() {
    let store = Store::redis();
    let upstream = Upstream::start();
    let routes = [Route::stripe(upstream.address).with("in_flight: {wait: 20s}")];
    let gateways = [Gateway::start(&store, &routes), Gateway::start(&store, &routes)];
    let addresses = [gateways[0].address(), gateways[1].address()];
    for round in 0..3 {
        let delivery = provider::stripe(&format!("evt_over_two_{round}"));
        let answers = provider::send_at_once(&addresses, &delivery, COPIES);
        assert!(answers.iter().all(|answer| answer.status == 200));
        assert_eq!(answers.iter().filter(|answer| answer.result() == "first").count(), 1);
        assert_eq!(upstream.count(), round + 1);
    }
}

#[test]
fn different_events_do_not_wait_for_each_other() {
    on_both_stores(|store| {
        let upstream = Upstream::start();
        let gate = Gate::closed();
        upstream.otherwise(Answer::status(200).behind(&gate));
        let gateway = Gateway::start(&store, &[Route::stripe(upstream.address)]);
        let mut lines: Vec<_> =
            (0..20).map(|number| gateway.begin(&provider::stripe(&format!("evt_{number}")))).collect();
        upstream.wait_for(20);
        assert_eq!(upstream.most_at_once(), 20);
        gate.open();
        for line in &mut lines {
            line.finish().expect(200, "first");
        }
    });
}
