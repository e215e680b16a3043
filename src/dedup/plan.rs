//! From what was found about each event to what is sent, in how many exchanges, and what is waited for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::claim::Record;
use crate::event::{Event, EventKey};

/// One distinct event of a delivery. An event that occurs twice in one delivery is one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where it stands first in the delivery's list of events.
    pub event: usize,
    /// Whether it stands there again.
    pub repeated: bool,
    /// `None` for an event without a key, which is always sent.
    pub key: Option<EventKey>,
}

/// The distinct events of a delivery, in the order of their first occurrence.
#[must_use]
pub fn items(events: &[Event]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::with_capacity(events.len());
    // An event that is alone needs not be looked for.
    let room = if events.len() > 1 { events.len() } else { 0 };
    let mut by_key: HashMap<&EventKey, usize> = HashMap::with_capacity(room);
    for (event, Event { key, .. }) in events.iter().enumerate() {
        if let (Ok(key), true) = (key, events.len() > 1) {
            match by_key.entry(key) {
                Entry::Occupied(known) => {
                    items[*known.get()].repeated = true;
                    continue;
                }
                Entry::Vacant(place) => place.insert(items.len()),
            };
        }
        items.push(Item { event, repeated: false, key: key.as_ref().ok().cloned() });
    }
    items
}

/// What is known of one item when the plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It has no key: it is sent, without a claim.
    Unkeyed,
    /// This delivery holds its claim.
    Claimed,
    /// It is settled.
    Done(Record),
    /// Somebody else's claim is open.
    Open,
    /// The store gave no answer for it.
    NoAnswer,
    /// An exchange of this delivery or a wait has decided it already: the plan leaves it alone.
    Ended,
}

/// The rules of the route that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How a batch is sent.
    pub batch: Batching,
    /// `store_down: forward`: an event that the store gave no answer for is sent without a claim.
    pub forward_without_store: bool,
    /// `mode: observe`: everything is forwarded as it came.
    pub observe: bool,
}

/// How a batch is sent, and whether this delivery can be cut at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// Each event becomes a delivery of its own.
    Split,
    /// One delivery without the events that are not to be sent.
    Filter,
    /// As received, or not at all.
    Whole,
}

/// One exchange to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The items it carries (indices into the list of items) that settle by its outcome.
    pub items: Vec<usize>,
    /// The body it sends.
    pub body: Body,
}

/// What an exchange sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The received bytes. The provider gets the upstream's own answer.
    Whole,
    /// Only these events (indices into the delivery's list of events).
    Only(Vec<usize>),
}

/// What is to be done with a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The store gave no answer for some of it, and nothing is sent without one.
    Unavailable,
    /// These exchanges, and these items to be waited for. Both may be empty.
    Act {
        /// The exchanges, in the order of the delivery.
        exchanges: Vec<Exchange>,
        /// Items whose claim somebody else holds.
        wait: Vec<usize>,
    },
}

/// Decides what to do. `findings` has one entry for each of `items`.
#[must_use]
pub fn plan(items: &[Item], findings: &[Finding], rules: Rules) -> Plan {
    if rules.observe {
        // What the store did not answer for may have been claimed, so it is settled like what was. An event that is
        // open elsewhere is done if this exchange delivers it, whatever becomes of the other one.
        let settled =
            positions(findings, |finding| matches!(finding, Finding::Claimed | Finding::NoAnswer | Finding::Open));
        return Plan::Act { exchanges: vec![Exchange { items: settled, body: Body::Whole }], wait: Vec::new() };
    }
    if !rules.forward_without_store && findings.contains(&Finding::NoAnswer) {
        return Plan::Unavailable;
    }

    let sent =
        positions(findings, |finding| matches!(finding, Finding::Claimed | Finding::Unkeyed | Finding::NoAnswer));
    let open = positions(findings, |finding| finding == Finding::Open);
    // A body that holds an event twice is cut even if that event is all there is: a handler would run both.
    let as_received = sent.len() == items.len() && !items.iter().any(|item| item.repeated);
    if sent.is_empty() {
        return Plan::Act { exchanges: Vec::new(), wait: open };
    }
    match rules.batch {
        Batching::Split if items.len() > 1 || !as_received => {
            let exchanges = sent
                .into_iter()
                .map(|item| Exchange { items: vec![item], body: Body::Only(vec![items[item].event]) })
                .collect();
            Plan::Act { exchanges, wait: open }
        }
        Batching::Filter if !as_received => {
            let events = sent.iter().map(|item| items[*item].event).collect();
            Plan::Act { exchanges: vec![Exchange { items: sent, body: Body::Only(events) }], wait: open }
        }
        // As received it carries the open events too, so its success settles them as well: nothing is left to wait
        // for. This is the exception to the first promise that `batch: whole` asks for.
        Batching::Whole | Batching::Filter | Batching::Split => {
            let mut carried = sent;
            carried.extend(open);
            carried.sort_unstable();
            Plan::Act { exchanges: vec![Exchange { items: carried, body: Body::Whole }], wait: Vec::new() }
        }
    }
}

fn positions(findings: &[Finding], wanted: impl Fn(Finding) -> bool) -> Vec<usize> {
    findings.iter().enumerate().filter(|(_, finding)| wanted(**finding)).map(|(index, _)| index).collect()
}

/// Puts exchanges into chains: those of one chain go one after the other, chains side by side. Exchanges whose event
/// belongs to a conversation follow each other in the order of the delivery; every other one is a chain of its own.
#[must_use]
pub fn chains(exchanges: Vec<Exchange>, items: &[Item], events: &[Event]) -> Vec<Vec<Exchange>> {
    let mut chains: Vec<Vec<Exchange>> = Vec::with_capacity(exchanges.len());
    let mut by_conversation: HashMap<&str, usize> = HashMap::new();
    for exchange in exchanges {
        let conversation = match exchange.items.as_slice() {
            [only] => events[items[*only].event].conversation.as_deref(),
            _ => None,
        };
        match conversation {
            Some(conversation) => match by_conversation.get(conversation) {
                Some(chain) => chains[*chain].push(exchange),
                None => {
                    by_conversation.insert(conversation, chains.len());
                    chains.push(vec![exchange]);
                }
            },
            None => chains.push(vec![exchange]),
        }
    }
    chains
}

#[cfg(test)]
mod tests;
