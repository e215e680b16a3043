//! A verified delivery's way from its events to its answer: claim, plan, exchanges and waits, settle, answer.
//!
//! This runs apart from the provider's connection: whoever hangs up changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use tokio::time::Instant;

use super::exchange::{Exchanged, Pace, Sender};
use super::inflight::{Ended, Lead, Place};
use super::lease::OpenClaims;
use super::respond::Reply;
use super::upstream::Answer;
use super::wait::{Waited, still_open, wait_for};
use super::{Core, Incoming};
use crate::claim::{Found, Record, Terms};
use crate::config::{BatchMode, Mode, StoreDown};
use crate::dedup::plan::{Batching, Exchange, Finding, Item, Plan, Rules, chains, items, plan};
use crate::dedup::verdict::End;
use crate::event::EventKey;
use crate::metrics::DeliveryResult;

/// What became of a delivery.
pub(super) struct Forwarded {
    pub(super) reply: Reply,
    pub(super) result: DeliveryResult,
    /// The `hookonce-result` header: the result, and for a batch its counts.
    pub(super) label: String,
    pub(super) keys: Vec<EventKey>,
    /// When a duplicate was first delivered.
    pub(super) first_seen: Option<Record>,
    pub(super) upstream_status: Option<u16>,
    pub(super) causes: Vec<String>,
    /// Whether anything went otherwise than a plain first or duplicate.
    pub(super) exceptional: bool,
}

/// One delivery under way.
pub(super) struct Run<'a> {
    core: &'a Arc<Core>,
    pub(super) incoming: &'a Incoming,
    pub(super) items: Vec<Item>,
    claims: OpenClaims,
    pace: Pace,
    pub(super) rules: Rules,
}

/// What is known of each item while the delivery runs.
pub(super) struct Progress {
    places: Vec<Option<Place>>,
    findings: Vec<Finding>,
    pub(super) ends: Vec<Option<End>>,
    pub(super) answer: Option<Answer>,
    pub(super) upstream_status: Option<u16>,
    pub(super) causes: Vec<String>,
}

/// Takes a verified delivery all the way.
pub(super) async fn forward(core: Arc<Core>, incoming: Incoming) -> Forwarded {
    let config = &incoming.route.config;
    let items = items(&incoming.extraction.events);
    let batching = match config.batch {
        _ if incoming.extraction.batch.is_none() => Batching::Whole,
        BatchMode::Split => Batching::Split,
        BatchMode::Filter => Batching::Filter,
        BatchMode::Whole => Batching::Whole,
    };
    let terms = Terms { lease: config.lease, window: config.window };
    let run = Run {
        core: &core,
        incoming: &incoming,
        claims: OpenClaims::new(Arc::clone(&core.store), Arc::clone(&core.metrics), core.log.keys, terms),
        pace: Pace::new(items.len()),
        rules: Rules {
            batch: batching,
            forward_without_store: config.store_down == StoreDown::Forward,
            observe: config.mode == Mode::Observe,
        },
        items,
    };
    let mut progress = run.claim().await;
    let found = progress.findings.clone();
    run.claims.while_renewing(run.act(&mut progress)).await;
    run.conclude(progress, &found)
}

impl Run<'_> {
    /// Takes a place at every key, and claims in one round trip those that nobody else in this process leads.
    async fn claim(&self) -> Progress {
        let mut places: Vec<Option<Place>> = Vec::with_capacity(self.items.len());
        let mut findings = vec![Finding::Unkeyed; self.items.len()];
        let mut causes = Vec::new();
        let mut led = Vec::new();
        let mut keys = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            let place = item.key.as_ref().map(|key| self.core.in_flight.join(key));
            if let (Some(key), Some(place)) = (&item.key, &place) {
                findings[index] = Finding::Open;
                if matches!(place, Place::Lead(_)) {
                    led.push(index);
                    keys.push(key.clone());
                }
            }
            places.push(place);
        }
        if !keys.is_empty() {
            let answers = self.claims.claim(&keys).await;
            for (index, answer) in led.into_iter().zip(answers) {
                findings[index] = match answer {
                    Ok(Found::Claimed) => Finding::Claimed,
                    Ok(Found::Held) => Finding::Open,
                    Ok(Found::Done(record)) => {
                        if let Some(Place::Lead(lead)) = places[index].take() {
                            lead.end(Ended::Done(record));
                        }
                        Finding::Done(record)
                    }
                    Err(error) => {
                        causes.push(error.to_string());
                        Finding::NoAnswer
                    }
                };
            }
            causes.dedup();
        }
        let ends = vec![None; self.items.len()];
        Progress { places, findings, ends, answer: None, upstream_status: None, causes }
    }

    async fn act(&self, progress: &mut Progress) {
        match plan(&self.items, &progress.findings, self.rules) {
            Plan::Unavailable => self.refuse(progress),
            Plan::Act { exchanges, wait } => {
                // First every exchange of its own claims is begun, then it waits for what others hold: two deliveries
                // that hold each other's events in opposite order both get on.
                let leads = progress.take_leads(&exchanges);
                let places: Vec<Option<Place>> = wait.iter().map(|item| progress.places[*item].take()).collect();
                let (exchanged, waited) =
                    tokio::join!(self.exchange_all(exchanges, leads), self.wait_for_all(&wait, places));
                self.note(progress, exchanged);
                for finding in &mut progress.findings {
                    *finding = Finding::Ended;
                }
                for (item, waited) in wait.into_iter().zip(waited) {
                    match waited {
                        Waited::Claimed(lead) => {
                            progress.findings[item] = Finding::Claimed;
                            progress.places[item] = Some(Place::Lead(lead));
                        }
                        Waited::Ended(end) => progress.ends[item] = Some(end),
                    }
                }
                // What became free while it waited is sent now.
                if let Plan::Act { exchanges, .. } = plan(&self.items, &progress.findings, self.rules)
                    && !self.rules.observe
                {
                    let leads = progress.take_leads(&exchanges);
                    let exchanged = self.exchange_all(exchanges, leads).await;
                    self.note(progress, exchanged);
                }
            }
        }
    }

    /// Nothing is sent; what was or may have been claimed is freed in the background.
    fn refuse(&self, progress: &mut Progress) {
        let mut claimed = Vec::new();
        for (index, finding) in progress.findings.iter().enumerate() {
            let (end, ended) = match finding {
                Finding::NoAnswer => (End::StoreUnavailable, Ended::Unavailable),
                Finding::Done(record) => (End::Duplicate(*record), Ended::Done(*record)),
                _ => (End::NotBegun, Ended::GaveUp),
            };
            progress.ends[index] = Some(end);
            if matches!(finding, Finding::NoAnswer | Finding::Claimed) {
                claimed.extend(self.items[index].key.clone());
            }
            if let Some(Place::Lead(lead)) = progress.places[index].take() {
                lead.end(ended);
            }
        }
        self.core.settler.release_later(&self.claims, claimed);
    }

    /// Has all exchanges: chains side by side, up to the route's `batch_concurrency`.
    async fn exchange_all(&self, exchanges: Vec<Exchange>, mut leads: HashMap<usize, Lead>) -> Vec<Exchanged> {
        let sender = Sender {
            core: self.core,
            incoming: self.incoming,
            items: &self.items,
            claims: &self.claims,
            pace: &self.pace,
        };
        let mut of = |exchange: &Exchange| -> Vec<Lead> {
            exchange.items.iter().filter_map(|item| leads.remove(item)).collect()
        };
        if exchanges.len() == 1 {
            let mut all = Vec::with_capacity(1);
            for exchange in exchanges {
                let leads = of(&exchange);
                all.push(sender.exchange(exchange, leads).await);
            }
            return all;
        }
        let chains: Vec<Vec<(Exchange, Vec<Lead>)>> = chains(exchanges, &self.items, &self.incoming.extraction.events)
            .into_iter()
            .map(|chain| {
                chain
                    .into_iter()
                    .map(|exchange| {
                        let leads = of(&exchange);
                        (exchange, leads)
                    })
                    .collect()
            })
            .collect();
        let sender = &sender;
        let ended: Vec<Vec<Exchanged>> = stream::iter(chains)
            .map(|chain| async move {
                let mut ended = Vec::with_capacity(chain.len());
                for (exchange, leads) in chain {
                    ended.push(sender.exchange(exchange, leads).await);
                }
                ended
            })
            .buffer_unordered(self.incoming.route.config.batch_concurrency)
            .collect()
            .await;
        ended.into_iter().flatten().collect()
    }

    async fn wait_for_all(&self, wait: &[usize], places: Vec<Option<Place>>) -> Vec<Waited> {
        if wait.is_empty() {
            return Vec::new();
        }
        let deadline = Instant::now() + self.incoming.route.config.in_flight.wait;
        // Beyond the bound nobody waits: a gateway that is full answers, it does not grow.
        let permit = self.core.waiting.try_acquire();
        let waits = wait.iter().zip(places).map(|(item, place)| async {
            match (&self.items[*item].key, place) {
                (Some(key), Some(place)) if permit.is_ok() && !self.core.is_stopping() => {
                    wait_for(self.core, &self.claims, key, place, deadline).await
                }
                (Some(key), _) => still_open(self.core, &self.claims, key).await,
                (None, _) => Waited::Ended(End::NotBegun),
            }
        });
        join_all(waits).await
    }

    fn note(&self, progress: &mut Progress, exchanged: Vec<Exchanged>) {
        for Exchanged { items, end, answer, cause, status } in exchanged {
            for item in items {
                progress.ends[item] = Some(end);
            }
            if answer.is_some() {
                progress.answer = answer;
            }
            progress.upstream_status = status.or(progress.upstream_status);
            if let Some(cause) = cause
                && !progress.causes.contains(&cause)
            {
                progress.causes.push(cause);
            }
        }
    }
}

impl Progress {
    /// This delivery's places at the events of these exchanges.
    fn take_leads(&mut self, exchanges: &[Exchange]) -> HashMap<usize, Lead> {
        let mut leads = HashMap::new();
        for item in exchanges.iter().flat_map(|exchange| &exchange.items) {
            // A place behind another delivery of this gateway stays one: that delivery ends it.
            match self.places[*item].take() {
                Some(Place::Lead(lead)) => {
                    leads.insert(*item, lead);
                }
                other => self.places[*item] = other,
            }
        }
        leads
    }
}
