//! Each exchange stands on a claim of its own.

use std::collections::HashSet;

use super::super::history::{At, Exchange};
use super::holdings::Holding;
use super::{Breach, CLOSE, Case, SLACK, Verdict};

/// For each exchange of the case, the claim it stands on.
pub type Licenses = Vec<Option<usize>>;

pub fn check(case: &Case<'_>, verdict: &mut Verdict) -> Licenses {
    let mut seen = HashSet::new();
    for exchange in &case.exchanges {
        if !seen.insert(exchange.attempt) {
            let why = format!("attempt {} was sent before", exchange.attempt);
            verdict.add(Breach::TwiceByOneDelivery, case.event, exchange.arrived, why);
        }
    }
    let licenses = best_matching(case);
    for (index, exchange) in case.exchanges.iter().enumerate() {
        match case.holding(licenses[index]) {
            Some(holding) if is_in_force(holding, exchange) => {}
            Some(_) => verdict.late_after_pause += 1,
            None => {
                let (breach, why) = accuse(case, exchange);
                verdict.add(breach, case.event, exchange.arrived, why);
            }
        }
    }
    licenses
}

fn sent(case: &Case<'_>, exchange: &Exchange) -> At {
    case.history.attempts[exchange.attempt].sent
}

/// Whether the exchange may have begun while the claim held.
fn is_in_force(holding: &Holding, exchange: &Exchange) -> bool {
    holding.last_moment() + SLACK >= exchange.arrived
}

fn fits(case: &Case<'_>, holding: &Holding, exchange: &Exchange) -> bool {
    let made_for_it = holding.from + CLOSE >= sent(case, exchange) && holding.from <= exchange.arrived + CLOSE;
    let meanwhile = (holding.from, exchange.arrived);
    let paused = || case.suffered(Some(exchange.gateway), meanwhile, |fault| fault.kind.pauses());
    made_for_it && (is_in_force(holding, exchange) || paused())
}

/// Under `suppress` a claim is none to send on before it was promoted.
fn licenses(case: &Case<'_>, holding: &Holding, exchange: &Exchange) -> bool {
    let promoted = holding.promoted.is_some_and(|promoted| promoted <= exchange.arrived + CLOSE);
    (promoted || !case.suppresses()) && fits(case, holding, exchange)
}

/// The matching in which most exchanges have a claim. Each takes, if it can, the one that held when it arrived.
fn best_matching(case: &Case<'_>) -> Licenses {
    let holdings = &case.story.holdings;
    let options: Vec<Vec<usize>> = case
        .exchanges
        .iter()
        .map(|exchange| {
            let mut options: Vec<usize> =
                (0..holdings.len()).filter(|index| licenses(case, &holdings[*index], exchange)).collect();
            options.sort_by_key(|index| {
                let holding = &holdings[*index];
                let held = holding.from <= exchange.arrived && holding.last_moment() >= exchange.arrived;
                (!held, !is_in_force(holding, exchange), holding.from.abs_diff(exchange.arrived))
            });
            options
        })
        .collect();
    let mut taken: Vec<Option<usize>> = vec![None; holdings.len()];
    for exchange in 0..options.len() {
        place(exchange, &options, &mut taken, &mut HashSet::new());
    }
    let mut licenses = vec![None; options.len()];
    for (holding, exchange) in taken.into_iter().enumerate() {
        if let Some(exchange) = exchange {
            licenses[exchange] = Some(holding);
        }
    }
    licenses
}

/// Finds a claim for an exchange; others move to another of theirs if that makes room.
fn place(exchange: usize, options: &[Vec<usize>], taken: &mut [Option<usize>], tried: &mut HashSet<usize>) -> bool {
    for holding in &options[exchange] {
        if !tried.insert(*holding) {
            continue;
        }
        let free = match taken[*holding] {
            None => true,
            Some(other) => place(other, options, taken, tried),
        };
        if free {
            taken[*holding] = Some(exchange);
            return true;
        }
    }
    false
}

/// What was broken by an exchange that has no claim.
fn accuse(case: &Case<'_>, exchange: &Exchange) -> (Breach, String) {
    let from = exchange.arrived.saturating_sub(SLACK);
    if let Some(recorded) = case.story.recorded.filter(|recorded| *recorded <= from) {
        return (Breach::AfterRecord, format!("it was recorded as delivered at {recorded:?}"));
    }
    let unpromoted = |holding: &&Holding| holding.promoted.is_none() && fits(case, holding, exchange);
    if case.suppresses()
        && let Some(claim) = case.story.holdings.iter().find(unpromoted)
    {
        return (Breach::NotPromoted, format!("the claim of `{}` was not promoted", claim.token));
    }
    let holder =
        case.story.holdings.iter().find(|holding| holding.from <= from && holding.last_moment() >= exchange.arrived);
    match holder {
        Some(holder) => (Breach::WhileHeld, format!("`{}` held it from {:?} on", holder.token, holder.from)),
        None => (Breach::WithoutClaim, "no claim was made for it, or it had ended".to_owned()),
    }
}
