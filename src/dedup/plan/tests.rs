//! What is sent and what is waited for, finding by finding.

use proptest::prelude::*;

use super::*;
use crate::claim::Recorded;
use crate::event::Unkeyed;

const DONE: Finding = Finding::Done(Record { at: None, result: Recorded::Delivered(200) });
const ENFORCE: Rules = Rules { batch: Batching::Whole, forward_without_store: false, observe: false };

fn event(key: Option<&str>, conversation: Option<&str>) -> Event {
    Event {
        kind: "event".into(),
        key: key.map(|key| EventKey::new("r", [Some(key)])).ok_or(Unkeyed::NotJson),
        conversation: conversation.map(str::to_owned),
    }
}

fn batch(keys: &[&str]) -> Vec<Item> {
    items(&keys.iter().map(|key| event(Some(key), None)).collect::<Vec<_>>())
}

fn exchange(items: &[usize], body: Body) -> Exchange {
    Exchange { items: items.to_vec(), body }
}

fn act(exchanges: Vec<Exchange>, wait: &[usize]) -> Plan {
    Plan::Act { exchanges, wait: wait.to_vec() }
}

#[test]
fn an_event_that_occurs_twice_in_a_delivery_is_one() {
    let events = [event(Some("a"), None), event(None, None), event(Some("b"), None), event(Some("a"), None)];
    let items = items(&events);
    let seen: Vec<_> = items.iter().map(|item| (item.event, item.repeated)).collect();
    assert_eq!(seen, [(0, true), (1, false), (2, false)]);
}

#[test]
fn one_event() {
    for (finding, expected) in [
        (Finding::Claimed, act(vec![exchange(&[0], Body::Whole)], &[])),
        (Finding::Unkeyed, act(vec![exchange(&[0], Body::Whole)], &[])),
        (DONE, act(vec![], &[])),
        (Finding::Open, act(vec![], &[0])),
        (Finding::NoAnswer, Plan::Unavailable),
    ] {
        for batch in [Batching::Split, Batching::Filter, Batching::Whole] {
            let rules = Rules { batch, ..ENFORCE };
            assert_eq!(plan(&self::batch(&["a"]), &[finding], rules), expected, "{finding:?} under {batch:?}");
        }
    }
}

#[test]
fn a_batch_with_something_new_something_done_and_something_open() {
    let items = batch(&["new", "done", "open", "newer"]);
    let findings = [Finding::Claimed, DONE, Finding::Open, Finding::Claimed];
    let with = |batch| plan(&items, &findings, Rules { batch, ..ENFORCE });
    assert_eq!(
        with(Batching::Split),
        act(vec![exchange(&[0], Body::Only(vec![0])), exchange(&[3], Body::Only(vec![3]))], &[2])
    );
    assert_eq!(with(Batching::Filter), act(vec![exchange(&[0, 3], Body::Only(vec![0, 3]))], &[2]));
    assert_eq!(with(Batching::Whole), act(vec![exchange(&[0, 2, 3], Body::Whole)], &[]));
}

#[test]
fn a_batch_that_is_all_new_goes_as_it_came_unless_it_is_split() {
    let items = batch(&["a", "b"]);
    let findings = [Finding::Claimed, Finding::Unkeyed];
    for batch in [Batching::Filter, Batching::Whole] {
        assert_eq!(plan(&items, &findings, Rules { batch, ..ENFORCE }), act(vec![exchange(&[0, 1], Body::Whole)], &[]));
    }
}

#[test]
fn a_body_that_holds_one_event_twice_is_cut_where_it_may_be() {
    let items = items(&[event(Some("a"), None), event(Some("a"), None)]);
    for (batch, body) in [
        (Batching::Split, Body::Only(vec![0])),
        (Batching::Filter, Body::Only(vec![0])),
        (Batching::Whole, Body::Whole),
    ] {
        let rules = Rules { batch, ..ENFORCE };
        assert_eq!(plan(&items, &[Finding::Claimed], rules), act(vec![exchange(&[0], body)], &[]), "{batch:?}");
    }
}

#[test]
fn one_missing_answer_stops_the_whole_delivery_unless_the_route_forwards() {
    let items = batch(&["a", "b", "c"]);
    let findings = [Finding::Claimed, Finding::NoAnswer, DONE];
    let split = Rules { batch: Batching::Split, ..ENFORCE };
    assert_eq!(plan(&items, &findings, split), Plan::Unavailable);
    assert_eq!(
        plan(&items, &findings, Rules { forward_without_store: true, ..split }),
        act(vec![exchange(&[0], Body::Only(vec![0])), exchange(&[1], Body::Only(vec![1]))], &[])
    );
}

#[test]
fn observe_sends_everything_as_it_came_and_settles_what_it_claimed() {
    let items = batch(&["a", "b", "c", "d"]);
    let findings = [DONE, Finding::Claimed, Finding::Open, Finding::NoAnswer];
    let rules = Rules { batch: Batching::Split, observe: true, ..ENFORCE };
    assert_eq!(plan(&items, &findings, rules), act(vec![exchange(&[1, 2, 3], Body::Whole)], &[]));
}

#[test]
fn events_of_one_conversation_follow_each_other() {
    let events = [
        event(Some("1"), Some("ana")),
        event(Some("2"), None),
        event(Some("3"), Some("rui")),
        event(Some("4"), Some("ana")),
    ];
    let items = items(&events);
    let exchanges = (0..4).map(|item| exchange(&[item], Body::Only(vec![item]))).collect();
    let order: Vec<Vec<usize>> = chains(exchanges, &items, &events)
        .into_iter()
        .map(|chain| chain.into_iter().map(|exchange| exchange.items[0]).collect())
        .collect();
    assert_eq!(order, [vec![0, 3], vec![1], vec![2]]);
}

fn finding() -> impl Strategy<Value = Finding> {
    prop_oneof![
        Just(Finding::Unkeyed),
        Just(Finding::Claimed),
        Just(DONE),
        Just(Finding::Open),
        Just(Finding::NoAnswer),
        Just(Finding::Ended),
    ]
}

proptest! {
    #[test]
    fn what_is_claimed_or_unkeyed_is_sent_once_and_what_is_done_never_by_itself(
        findings in proptest::collection::vec(finding(), 1..8),
        batch in prop_oneof![Just(Batching::Split), Just(Batching::Filter), Just(Batching::Whole)],
        forward_without_store in any::<bool>(),
    ) {
        let names: Vec<String> = (0..findings.len()).map(|index| index.to_string()).collect();
        let items = self::batch(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let rules = Rules { batch, forward_without_store, observe: false };
        match plan(&items, &findings, rules) {
            Plan::Unavailable => {
                prop_assert!(!forward_without_store && findings.contains(&Finding::NoAnswer));
            }
            Plan::Act { exchanges, wait } => {
                for (item, finding) in findings.iter().enumerate() {
                    let carried = exchanges.iter().filter(|exchange| exchange.items.contains(&item)).count();
                    match finding {
                        Finding::Unkeyed | Finding::Claimed | Finding::NoAnswer => prop_assert_eq!(carried, 1),
                        Finding::Done(_) | Finding::Ended => prop_assert_eq!(carried, 0),
                        Finding::Open => prop_assert_eq!(carried + usize::from(wait.contains(&item)), 1),
                    }
                    if carried == 0 {
                        for exchange in &exchanges {
                            if let Body::Only(events) = &exchange.body {
                                prop_assert!(!events.contains(&items[item].event));
                            }
                        }
                    }
                }
            }
        }
    }
}
