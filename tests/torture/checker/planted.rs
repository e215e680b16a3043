//! The checker itself: a clean history passes, and each breach that is planted is found.

#![cfg(test)]

use std::time::Duration;

use super::super::history::{Act, At, Attempt, Change, Event, Exchange, Fault, History, Kind, Promise, Written};
use super::{Breach, Cause, check};

const LEASE: u64 = 2_000;

fn ms(milliseconds: u64) -> At {
    Duration::from_millis(milliseconds)
}

/// A history of one event, written as a story.
struct Tale {
    event: Event,
    history: History,
}

impl Tale {
    fn of(promise: Promise) -> Self {
        let history = History { timeout: ms(3_000), lease: ms(LEASE), end: ms(100_000), ..History::default() };
        Self { event: Event { promise, number: 1 }, history }
    }

    fn write(mut self, at: u64, what: Written) -> Self {
        self.history.changes.push(Change { event: self.event, earliest: ms(at), latest: ms(at + 1), what });
        self
    }

    fn claimed(self, at: u64, token: &str) -> Self {
        self.write(at, Written::Claimed { token: token.to_owned(), until: ms(at + LEASE) })
    }

    fn promoted(self, at: u64, token: &str) -> Self {
        self.write(at, Written::Sending { token: token.to_owned(), until: ms(at + LEASE) })
    }

    fn attempt(mut self, gateway: usize, sent: u64, ended: u64, status: Option<u16>) -> Self {
        let answer = status.map(|status| (status, "first".to_owned()));
        let (sent, ended) = (ms(sent), Some(ms(ended)));
        self.history.attempts.push(Attempt { events: vec![self.event], gateway, sent, ended, answer });
        self
    }

    /// The exchange of the latest attempt.
    fn exchange(mut self, arrived: u64, act: Act, status: Option<u16>) -> Self {
        let attempt = self.history.attempts.len() - 1;
        self.history.exchanges.push(Exchange {
            event: self.event,
            attempt,
            gateway: self.history.attempts[attempt].gateway,
            arrived: ms(arrived),
            act,
            worked: !matches!(act, Act::Refuse | Act::Fail),
            said: status.map(|status| (status, ms(arrived + 10))),
        });
        self
    }

    fn fault(mut self, kind: Kind, gateway: Option<usize>, from: u64, to: u64) -> Self {
        self.history.faults.push(Fault { kind, gateway, from: ms(from), to: ms(to) });
        self
    }

    /// An event that gateway 0 delivered and recorded.
    fn delivered(promise: Promise) -> Self {
        let tale = Self::of(promise).attempt(0, 1_000, 1_040, Some(200)).claimed(1_005, "a");
        let tale = if promise == Promise::Suppress { tale.promoted(1_008, "a") } else { tale };
        tale.exchange(1_010, Act::Answer, Some(200)).write(1_030, Written::Done)
    }

    /// Delivered through gateway 0, whose claim ended unrecorded, and then again through gateway 1.
    fn lapsed(promise: Promise) -> Self {
        let tale = Self::of(promise).attempt(0, 1_000, 1_900, None).claimed(1_005, "a");
        let tale = if promise == Promise::Suppress { tale.promoted(1_008, "a") } else { tale };
        let tale = tale.exchange(1_010, Act::Answer, Some(200)).write(4_000, Written::Deleted);
        let tale = tale.attempt(1, 4_000, 4_040, Some(200)).claimed(4_005, "b");
        let tale = if promise == Promise::Suppress { tale.promoted(4_008, "b") } else { tale };
        tale.exchange(4_010, Act::Answer, Some(200)).write(4_030, Written::Done)
    }

    fn breaches(&self) -> Vec<Breach> {
        check(&self.history).violations.iter().map(|violation| violation.breach).collect()
    }
}

const ALL: [Promise; 3] = [Promise::Redeliver, Promise::Suppress, Promise::Split];

#[test]
fn a_clean_history_passes() {
    for promise in ALL {
        let copy = Tale::delivered(promise).attempt(1, 2_000, 2_010, Some(200));
        assert_eq!(copy.breaches(), [], "{promise:?}");
        let refused = Tale::of(promise).attempt(0, 500, 540, Some(500)).claimed(505, "z");
        let mut refused = if promise == Promise::Suppress { refused.promoted(508, "z") } else { refused };
        refused = refused.exchange(510, Act::Fail, Some(500)).write(520, Written::Deleted);
        let later = Tale::delivered(promise).history;
        refused = refused.attempt(0, 1_000, 1_040, Some(200));
        refused.history.changes.extend(later.changes);
        refused = refused.exchange(1_010, Act::Answer, Some(200));
        assert_eq!(refused.breaches(), [], "{promise:?}");
    }
}

#[test]
fn each_explained_repeat_is_counted_by_its_cause() {
    for (kind, cause) in [
        (Kind::GatewayKilled, Cause::OwnerDied),
        (Kind::GatewayPaused, Cause::OwnerPaused),
        (Kind::StoreCut, Cause::OwnerCutOff),
    ] {
        let tale = Tale::lapsed(Promise::Redeliver).fault(kind, Some(0), 1_015, 3_500);
        assert_eq!(tale.breaches(), [], "{kind:?}");
        assert_eq!(check(&tale.history).repeats.get(&cause), Some(&1), "{kind:?}");
    }
    let mut unknown = Tale::lapsed(Promise::Redeliver);
    unknown.history.exchanges[0].act = Act::End;
    unknown.history.exchanges[0].said = None;
    unknown.history.changes[1].latest = ms(1_020);
    assert_eq!(unknown.breaches(), []);
    assert_eq!(check(&unknown.history).repeats.get(&Cause::UnknownOutcome), Some(&1));
}

#[test]
fn an_acknowledged_event_that_was_never_handled() {
    for promise in ALL {
        let silent = Tale::of(promise).attempt(0, 1_000, 1_040, Some(200));
        assert_eq!(silent.breaches(), [Breach::NeverHandled], "{promise:?}");
        let mut refused = Tale::delivered(promise);
        refused.history.exchanges[0].act = Act::Fail;
        refused.history.exchanges[0].worked = false;
        refused.history.exchanges[0].said = Some((500, ms(1_020)));
        assert_eq!(refused.breaches(), [Breach::NeverHandled], "{promise:?}");
        // Before the handler had said so, it was too early.
        let mut early = Tale::delivered(promise);
        early.history.attempts[0].ended = Some(ms(1_015));
        assert_eq!(early.breaches(), [Breach::NeverHandled], "{promise:?}");
    }
}

#[test]
fn under_suppress_an_event_whose_owner_died_after_promoting_may_be_lost() {
    let tale = Tale::of(Promise::Suppress).attempt(0, 1_000, 1_900, None).claimed(1_005, "a").promoted(1_008, "a");
    let tale = tale.attempt(1, 4_000, 4_010, Some(200));
    assert_eq!(tale.breaches(), [Breach::NeverHandled]);
    assert_eq!(tale.fault(Kind::GatewayKilledBeforeSending, Some(0), 1_009, 1_500).breaches(), []);
}

#[test]
fn an_exchange_after_a_recorded_success() {
    for promise in ALL {
        let tale = Tale::delivered(promise).attempt(1, 3_000, 3_040, Some(200)).exchange(3_010, Act::Fail, Some(500));
        assert_eq!(tale.breaches(), [Breach::AfterRecord], "{promise:?}");
    }
}

#[test]
fn an_exchange_while_another_owner_held_the_event() {
    let mut tale = Tale::delivered(Promise::Redeliver);
    tale.history.changes[1].earliest = ms(2_500);
    tale.history.changes[1].latest = ms(2_501);
    let tale = tale.attempt(1, 2_000, 2_040, Some(200)).exchange(2_010, Act::Refuse, Some(400));
    assert_eq!(tale.breaches(), [Breach::WhileHeld]);
}

#[test]
fn an_exchange_without_a_claim_or_after_its_end() {
    let bare = Tale::of(Promise::Split).attempt(0, 1_000, 1_040, Some(200)).exchange(1_010, Act::Answer, Some(200));
    assert_eq!(bare.breaches(), [Breach::WithoutClaim]);
    let late = Tale::of(Promise::Redeliver).attempt(0, 1_000, 5_040, Some(200)).claimed(1_005, "a");
    let late = late.exchange(5_010, Act::Answer, Some(200)).write(5_030, Written::Done);
    assert_eq!(late.breaches(), [Breach::WithoutClaim]);
    // Whoever was paused between the check and the write could not know.
    let paused = late.fault(Kind::GatewayPaused, Some(0), 1_100, 4_990);
    assert_eq!(paused.breaches(), []);
    assert_eq!(check(&paused.history).late_after_pause, 1);
}

#[test]
fn an_exchange_on_a_claim_that_was_not_promoted() {
    let mut tale = Tale::delivered(Promise::Suppress);
    tale.history.changes.remove(1);
    assert_eq!(tale.breaches(), [Breach::NotPromoted]);
}

#[test]
fn one_delivery_that_sends_its_event_twice() {
    let tale = Tale::delivered(Promise::Redeliver).exchange(1_020, Act::Refuse, Some(400));
    assert!(tale.breaches().contains(&Breach::TwiceByOneDelivery));
}

#[test]
fn a_repeat_that_nothing_explains() {
    let tale = Tale::lapsed(Promise::Redeliver);
    assert_eq!(tale.breaches(), [Breach::Unexplained]);
    // What happened before the last renewal, or after the end, explains nothing; and a moment's pause does not either.
    for (kind, from, to) in
        [(Kind::RedisFrozen, 3_100, 3_900), (Kind::RedisFull, 100, 900), (Kind::MachineStalled, 1_700, 1_900)]
    {
        let tale = Tale::lapsed(Promise::Redeliver).fault(kind, None, from, to);
        assert_eq!(tale.breaches(), [Breach::Unexplained], "{kind:?}");
    }
    let elsewhere = Tale::lapsed(Promise::Redeliver).fault(Kind::GatewayPaused, Some(1), 1_015, 3_500);
    assert_eq!(elsewhere.breaches(), [Breach::Unexplained]);
    // A success that was released is none that the store explains.
    let mut freed = Tale::lapsed(Promise::Redeliver).fault(Kind::RedisFrozen, None, 1_015, 3_500);
    freed.history.changes[1].earliest = ms(1_030);
    freed.history.changes[1].latest = ms(1_031);
    assert_eq!(freed.breaches(), [Breach::Unexplained]);
}

#[test]
fn a_gateway_that_knew_and_sent_again() {
    let mut tale = Tale::lapsed(Promise::Redeliver).fault(Kind::RedisFrozen, None, 1_015, 3_500);
    assert_eq!(tale.breaches(), []);
    tale.history.attempts[0].answer = Some((200, "first".to_owned()));
    assert_eq!(tale.breaches(), [], "the other gateway need not know");
    tale.history.attempts[1].gateway = 0;
    tale.history.exchanges[1].gateway = 0;
    assert_eq!(tale.breaches(), [Breach::KnewAndSentAgain]);
    assert_eq!(tale.fault(Kind::GatewayKilled, Some(0), 2_000, 3_000).breaches(), []);
}

#[test]
fn an_event_that_ran_twice_under_suppress() {
    let tale = Tale::lapsed(Promise::Suppress).fault(Kind::GatewayKilled, Some(0), 1_015, 3_500);
    assert_eq!(tale.breaches(), [Breach::RanTwice]);
}

#[test]
fn a_record_that_was_overwritten_or_lost() {
    for what in [Written::Unknown, Written::Deleted] {
        let tale = Tale::delivered(Promise::Redeliver).write(5_000, what);
        assert_eq!(tale.breaches(), [Breach::Overwritten]);
    }
    assert_eq!(Tale::delivered(Promise::Redeliver).claimed(5_000, "b").breaches(), [Breach::Overwritten]);
    assert_eq!(Tale::delivered(Promise::Redeliver).write(5_000, Written::Done).breaches(), []);
    let tale = Tale::of(Promise::Redeliver).attempt(0, 1_000, 1_040, Some(200)).claimed(1_005, "a");
    let tale = tale.claimed(1_500, "b").exchange(1_510, Act::Answer, Some(200)).write(1_520, Written::Done);
    let mut tale = tale;
    tale.history.attempts[0].ended = Some(ms(1_540));
    assert_eq!(tale.breaches(), [Breach::Overwritten]);
}

#[test]
fn an_event_that_stays_open() {
    let tale = Tale::of(Promise::Redeliver).attempt(0, 1_000, 1_040, Some(503));
    assert_eq!(tale.breaches(), [Breach::NeverAcknowledged]);
}
