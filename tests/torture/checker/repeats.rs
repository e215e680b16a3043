//! Every repeat is explained, and under `suppress` there is none.

use super::super::history::{Exchange, Fault};
use super::holdings::{End, Holding};
use super::license::Licenses;
use super::{AFTERMATH, Breach, Case, Cause, HARMLESS_PAUSE, Verdict};

pub fn check(case: &Case<'_>, licenses: &Licenses, verdict: &mut Verdict) {
    let worked = case.exchanges.iter().filter(|exchange| exchange.worked).count();
    if case.suppresses() && worked > 1 {
        let last = case.exchanges[case.exchanges.len() - 1];
        verdict.add(Breach::RanTwice, case.event, last.arrived, format!("it ran {worked} times"));
    }
    for (later, again) in case.exchanges.iter().enumerate() {
        knew(case, again, verdict);
        let before = (0..later).rev().filter(|earlier| case.exchanges[*earlier].worked);
        for (distance, earlier) in before.enumerate() {
            let first = case.exchanges[earlier];
            // An exchange without a claim has been accused of that already.
            let (Some(ended), Some(begun)) = (case.holding(licenses[earlier]), case.holding(licenses[later])) else {
                continue;
            };
            match explain(case, first, ended, begun) {
                Some(cause) if distance == 0 => *verdict.repeats.entry(cause).or_default() += 1,
                Some(_) => {}
                None => {
                    let why = format!(
                        "attempt {} had been handled by attempt {} through gateway {} (its claim: {:?}, until {:?})",
                        again.attempt, first.attempt, first.gateway, ended.end, ended.until
                    );
                    verdict.add(Breach::Unexplained, case.event, again.arrived, why);
                }
            }
        }
    }
}

/// Why the claim of an exchange that did the work ended, so that another one could begin.
fn explain(case: &Case<'_>, first: &Exchange, ended: &Holding, begun: &Holding) -> Option<Cause> {
    let lapsed = match ended.end {
        // Whoever releases says that it does not know of a success.
        End::Freed => false,
        End::Lapsed => true,
        // Two claims cannot hold at once, so a matching in which the second came first explains as much.
        End::Open | End::Done | End::Unknown => begun.from < ended.from,
    };
    let owner = Some(first.gateway);
    // What keeps an owner from renewing must show after the last renewal, which was a lease before the end.
    let unrenewed = (ended.until.saturating_sub(case.history.lease + AFTERMATH).max(ended.from), ended.until);
    let long = |fault: &Fault| fault.to.saturating_sub(fault.from) >= HARMLESS_PAUSE;
    if lapsed && case.suffered(owner, (ended.from, ended.until), |fault| fault.kind.ends_gateway()) {
        Some(Cause::OwnerDied)
    } else if lapsed && case.suffered(owner, unrenewed, |fault| fault.kind.pauses() && long(fault)) {
        Some(Cause::OwnerPaused)
    } else if lapsed && case.suffered(owner, unrenewed, |fault| fault.kind.concerns_store()) {
        Some(Cause::OwnerCutOff)
    } else if (lapsed || ended.end == End::Freed) && case.is_doubtful(first) {
        Some(Cause::UnknownOutcome)
    } else {
        None
    }
}

/// A gateway that told a provider of a success knows of it for as long as it lives, recorded or not.
fn knew(case: &Case<'_>, again: &Exchange, verdict: &mut Verdict) {
    let attempts = &case.history.attempts;
    let begun = attempts[again.attempt].sent;
    for first in case.exchanges.iter().filter(|first| first.gateway == again.gateway) {
        let Some(told) = attempts[first.attempt].acknowledged() else { continue };
        let said = first.said.is_some_and(|(status, at)| (200..300).contains(&status) && at <= told);
        let died = case.history.faults.iter().any(|fault| {
            let concerns = fault.gateway == Some(again.gateway) && fault.kind.ends_gateway();
            concerns && fault.from <= again.arrived && fault.to >= told
        });
        if said && told < begun && !died {
            let why = format!("gateway {} had told of its success at {told:?}", again.gateway);
            verdict.add(Breach::KnewAndSentAgain, case.event, again.arrived, why);
            return;
        }
    }
}
