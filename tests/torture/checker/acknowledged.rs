//! No event whose provider got a 2xx was never handled, and in the end each got one.

use std::collections::BTreeMap;

use super::super::history::{At, Event, Fault, History};
use super::license::Licenses;
use super::{Breach, Case, Verdict};

/// When each event was acknowledged.
pub fn by_event(history: &History) -> BTreeMap<Event, Vec<At>> {
    let mut acknowledged: BTreeMap<Event, Vec<At>> = BTreeMap::new();
    for attempt in &history.attempts {
        for event in &attempt.events {
            acknowledged.entry(*event).or_default().extend(attempt.acknowledged());
        }
    }
    acknowledged
}

pub fn check(case: &Case<'_>, acknowledged: &[At], licenses: &Licenses, verdict: &mut Verdict) {
    let Some(told) = acknowledged.iter().min().copied() else {
        let why = "it was still repeated when the run ended";
        verdict.add(Breach::NeverAcknowledged, case.event, case.history.end, why);
        return;
    };
    let handled = case
        .exchanges
        .iter()
        .any(|exchange| exchange.said.is_some_and(|(status, at)| (200..300).contains(&status) && at <= told));
    let excused = case.suppresses() && may_be_lost(case, told, licenses);
    if !handled && !excused {
        let why = format!("its provider got a 2xx at {told:?}");
        verdict.add(Breach::NeverHandled, case.event, told, why);
    }
}

/// Under `suppress`: whether an exchange before then had an unknown outcome, or an owner that had promoted the event
/// died, was paused, or was cut off from the handler or the store.
fn may_be_lost(case: &Case<'_>, told: At, licenses: &Licenses) -> bool {
    if case.exchanges.iter().any(|exchange| exchange.arrived <= told && case.is_doubtful(exchange)) {
        return true;
    }
    case.story.holdings.iter().enumerate().any(|(index, holding)| {
        let Some(promoted) = holding.promoted.filter(|promoted| *promoted <= told) else { return false };
        let exchange = licenses.iter().position(|license| *license == Some(index));
        let owner = exchange.map(|exchange| case.exchanges[exchange].gateway);
        let harms = |fault: &Fault| {
            let kind = fault.kind;
            kind.ends_gateway() || kind.pauses() || kind.concerns_upstream() || kind.concerns_store()
        };
        case.suffered(owner, (promoted, told.min(holding.until)), harms)
    })
}
