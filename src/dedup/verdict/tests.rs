//! Outcomes and ends, and what follows from them.

use proptest::prelude::*;

use super::*;

const RECORD: Record = Record { at: None, result: Recorded::Delivered(200) };

#[test]
fn only_a_delivered_or_suppressed_event_is_remembered() {
    let at = SystemTime::UNIX_EPOCH;
    let done = Settlement::Done(Record { at: Some(at), result: Recorded::Delivered(204) });
    let unknown = Settlement::Unknown(Record { at: Some(at), result: Recorded::Unknown });
    for (outcome, redeliver, suppress) in [
        (Outcome::Delivered(204), done, done),
        (Outcome::Refused(500), Settlement::Release, Settlement::Release),
        (Outcome::Refused(302), Settlement::Release, Settlement::Release),
        (Outcome::NotSent, Settlement::Release, Settlement::Release),
        (Outcome::Unknown(Doubt::TimedOut), Settlement::Release, unknown),
        (Outcome::Unknown(Doubt::Reset), Settlement::Release, unknown),
        (Outcome::Unknown(Doubt::GaveUp(504)), Settlement::Release, unknown),
    ] {
        assert_eq!(settlement(outcome, false, at), redeliver, "{outcome:?} under redeliver");
        assert_eq!(settlement(outcome, true, at), suppress, "{outcome:?} under suppress");
    }
}

#[test]
fn the_status_of_an_exchange_that_is_not_relayed() {
    for (outcome, status) in [
        (Outcome::Refused(101), 502),
        (Outcome::Refused(302), 502),
        (Outcome::Refused(422), 422),
        (Outcome::Refused(500), 500),
        (Outcome::NotSent, 502),
        (Outcome::Unknown(Doubt::TimedOut), 504),
        (Outcome::Unknown(Doubt::Reset), 502),
        (Outcome::Unknown(Doubt::GaveUp(504)), 504),
        (Outcome::Unknown(Doubt::GaveUp(302)), 502),
    ] {
        assert_eq!(status_for(outcome), status, "{outcome:?}");
    }
}

#[test]
fn the_worst_end_of_a_batch_decides() {
    let open = End::Open(Duration::from_secs(7));
    let delivered = End::Sent(Outcome::Delivered(200));
    let refused = End::Sent(Outcome::Refused(422));
    let timed_out = End::Sent(Outcome::Unknown(Doubt::TimedOut));
    for (ends, expected) in [
        (vec![delivered, End::Duplicate(RECORD)], Answer::Accepted),
        (vec![delivered, refused], Answer::Failed(503)),
        (vec![refused, timed_out], Answer::Failed(504)),
        (vec![delivered, End::Sent(Outcome::NotSent), End::StoreUnavailable], Answer::Failed(502)),
        (vec![delivered, End::StoreUnavailable, open], Answer::StoreUnavailable),
        (vec![End::NotBegun, open, delivered], Answer::TryAgain),
        (vec![delivered, open, End::Open(Duration::from_secs(9))], Answer::Open(Duration::from_secs(9))),
    ] {
        assert_eq!(answer(&ends, false), expected, "{ends:?}");
    }
}

#[test]
fn a_copy_is_answered_like_the_delivery_it_waited_for() {
    for status in [400, 422, 500, 503] {
        assert_eq!(answer(&[End::CopyFailed(Outcome::Refused(status))], true), Answer::Failed(status));
    }
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        (200u16..300).prop_map(|status| End::Sent(Outcome::Delivered(status))),
        (300u16..600).prop_map(|status| End::Sent(Outcome::Refused(status))),
        Just(End::Sent(Outcome::NotSent)),
        Just(End::Sent(Outcome::Unknown(Doubt::TimedOut))),
        Just(End::Sent(Outcome::Unknown(Doubt::Reset))),
        Just(End::CopyFailed(Outcome::Refused(500))),
        Just(End::Duplicate(RECORD)),
        Just(End::Open(Duration::from_secs(3))),
        Just(End::StoreUnavailable),
        Just(End::NotBegun),
    ]
}

proptest! {
    #[test]
    fn a_batch_is_accepted_only_when_every_event_is_done(ends in proptest::collection::vec(end(), 1..10)) {
        let all_done = ends
            .iter()
            .all(|end| matches!(end, End::Duplicate(_) | End::Sent(Outcome::Delivered(_))));
        prop_assert_eq!(answer(&ends, false) == Answer::Accepted, all_done);
    }

    #[test]
    fn a_batch_is_never_answered_with_a_status_that_makes_a_provider_give_up(
        ends in proptest::collection::vec(end(), 2..10),
    ) {
        if let Answer::Failed(status) = answer(&ends, false) {
            prop_assert!([502, 503, 504].contains(&status), "{}", status);
        }
    }
}
