//! What a run prints: its seed and its figures.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};

use super::checker::Verdict;
use super::history::History;

/// The figures of one run.
pub struct Figures<'a> {
    pub seed: u64,
    pub history: &'a History,
    pub verdict: &'a Verdict,
}

impl Display for Figures<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, history, verdict } = self;
        let answers = history.attempts.iter().map(|attempt| match &attempt.answer {
            Some((status, result)) => format!("{status} {result}"),
            None => "none (hung up, or cut)".to_owned(),
        });
        let events: std::collections::BTreeSet<_> =
            history.attempts.iter().flat_map(|attempt| &attempt.events).collect();
        let acts = history.exchanges.iter().map(|exchange| exchange.act);
        writeln!(out, "seed {seed}, {} s", history.end.as_secs())?;
        writeln!(out, "deliveries {} of {} events", history.attempts.len(), events.len())?;
        list(out, "answers", count(answers))?;
        writeln!(out, "exchanges {}", history.exchanges.len())?;
        list(out, "what the handler did", count(acts))?;
        list(out, "faults", count(history.faults.iter().map(|fault| fault.kind)))?;
        list(out, "repeats of handled events by cause", verdict.repeats.clone())?;
        writeln!(out, "begun late by a gateway that had been paused: {}", verdict.late_after_pause)?;
        writeln!(out, "writes in Redis {}", history.changes.len())?;
        list(out, "violations", count(verdict.violations.iter().map(|violation| violation.breach)))
    }
}

fn count<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

fn list<T: Debug>(out: &mut fmt::Formatter<'_>, title: &str, counts: BTreeMap<T, usize>) -> fmt::Result {
    writeln!(out, "{title}: {}", counts.values().sum::<usize>())?;
    for (name, count) in counts {
        writeln!(out, "  {count:>7} {}", format!("{name:?}").trim_matches('"'))?;
    }
    Ok(())
}

/// All that is known of the event of a violation, in the order of time.
pub fn account(history: &History, event: super::history::Event) -> String {
    let mut lines = Vec::new();
    for (number, attempt) in history.attempts.iter().enumerate() {
        if attempt.events.contains(&event) {
            let (gateway, ended) = (attempt.gateway, attempt.ended);
            lines.push((
                attempt.sent,
                format!("attempt {number} to gateway {gateway}: {:?} at {ended:?}", attempt.answer),
            ));
        }
    }
    for exchange in history.exchanges.iter().filter(|exchange| exchange.event == event) {
        lines.push((exchange.arrived, format!("{exchange:?}")));
    }
    for change in history.changes.iter().filter(|change| change.event == event) {
        lines.push((change.earliest, format!("Redis, until {:?} at the latest: {:?}", change.latest, change.what)));
    }
    let first = lines.iter().map(|(at, _)| *at).min().unwrap_or_default();
    let last = lines.iter().map(|(at, _)| *at).max().unwrap_or_default();
    let near = |at, other| at <= last + std::time::Duration::from_secs(2) && other >= first;
    for fault in history.faults.iter().filter(|fault| near(fault.from, fault.to)) {
        lines.push((fault.from, format!("{:?} of {:?} until {:?}", fault.kind, fault.gateway, fault.to)));
    }
    lines.sort();
    lines.iter().map(|(at, line)| format!("    {at:?} {line}\n")).collect()
}
