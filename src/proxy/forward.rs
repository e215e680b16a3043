//! A verified delivery's way from its events to its answer: claim, plan, exchanges and waits, settle, answer.
//!
//! Whoever hangs up changes nothing: nothing here looks at the provider's connection.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::exchange::{Exchanged, Pace, Sender};
use super::inflight::{Ended, Lead, Place};
use super::journal::Line;
use super::lease::OpenClaims;
use super::respond::Reply;
use super::upstream::Answer;
use super::wait::{Wait, Waited, Waiting};
use super::{Core, Incoming};
use crate::claim::{Found, Terms};
use crate::config::{BatchMode, Mode, StoreDown};
use crate::dedup::plan::{Batching, Exchange, Finding, Item, Plan, Rules, chains, items, plan};
use crate::dedup::verdict::End;

/// One delivery under way.
pub(super) struct Run<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) incoming: &'a Incoming<'a>,
    pub(super) items: Vec<Item>,
    claims: OpenClaims,
    pace: Pace,
    pub(super) rules: Rules,
}

/// The leads that a delivery has, for each of its items.
type Leads = Vec<Option<Lead>>;

/// What is known of each item while the delivery runs.
pub(super) struct Progress {
    places: Vec<Option<Place>>,
    findings: Vec<Finding>,
    pub(super) ends: Vec<Option<End>>,
    /// How the last exchange ended, whatever it carried: under `observe` it may carry no claim at all.
    pub(super) exchanged: Option<End>,
    /// Whether a body was cut.
    pub(super) cut: bool,
    pub(super) answer: Option<Answer>,
    pub(super) upstream_status: Option<u16>,
    pub(super) causes: Vec<String>,
}

/// Takes a verified delivery all the way: to its reply, and the line that is told about it.
pub(super) async fn forward(core: &Arc<Core>, incoming: &Incoming<'_>) -> (Reply, Line) {
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
        core,
        incoming,
        claims: OpenClaims::new(Arc::clone(&core.store), Arc::clone(&core.metrics), core.log.keys, terms),
        pace: Pace::new(items.len(), config.batch_concurrency),
        rules: Rules {
            batch: batching,
            forward_without_store: config.store_down == StoreDown::Forward,
            observe: config.mode == Mode::Observe,
        },
        items,
    };
    let mut progress = run.claim().await;
    let found = progress.findings.clone();
    run.claims.while_renewing(pin!(run.act(&mut progress))).await;
    run.conclude(progress, &found)
}

impl Run<'_> {
    /// Takes a place at every key, and claims together those that nobody else in this process leads.
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
        Progress { places, findings, ends, exchanged: None, cut: false, answer: None, upstream_status: None, causes }
    }

    async fn act(&self, progress: &mut Progress) {
        match plan(&self.items, &progress.findings, self.rules) {
            Plan::Unavailable => self.refuse(progress),
            Plan::Act { exchanges, wait } if wait.is_empty() => {
                let leads = progress.take_leads(&exchanges);
                let exchanged = self.exchange_all(exchanges, leads).await;
                self.note(progress, exchanged);
            }
            // Boxed, as everything is that few deliveries need: what all of them need stays small.
            Plan::Act { exchanges, wait } => Box::pin(self.act_and_wait(progress, exchanges, wait)).await,
        }
    }

    /// First every exchange of its own claims is begun, then it waits for what others hold: two deliveries that hold each
    /// other's events in opposite order both get on.
    async fn act_and_wait(&self, progress: &mut Progress, exchanges: Vec<Exchange>, wait: Vec<usize>) {
        let leads = progress.take_leads(&exchanges);
        let waits = progress.take_waits(&wait, &self.items);
        let (exchanged, (freed, waited)) = tokio::join!(self.exchange_all(exchanges, leads), self.wait_for_all(waits));
        self.note(progress, exchanged);
        self.note(progress, freed);
        self.send_what_became_free(progress, waited).await;
    }

    /// Waits for what others hold. What becomes free is sent at once where each event is sent by itself; else its claim
    /// comes back, to be sent together with the others. Answers the exchanges, and how the other waits ended.
    async fn wait_for_all(&self, waits: Vec<Wait>) -> (Vec<Exchanged>, Vec<(usize, Waited)>) {
        // Beyond the bound nobody waits: a gateway that is full answers, it does not grow.
        let Ok(_permit) = self.core.waiting.try_acquire() else {
            let open = |Wait { item, .. }| (item, Waited::Ended(End::Open(self.claims.terms.lease)));
            return (Vec::new(), waits.into_iter().map(open).collect());
        };
        let deadline = Instant::now() + self.incoming.route.config.in_flight.wait;
        let (tell, mut told) = mpsc::unbounded_channel();
        let waiting = Waiting::new(self.core, &self.claims, deadline, waits);
        // The receiver lives until the waiting has ended, so nothing told is lost.
        let waiting = waiting.run(move |item, waited| drop(tell.send((item, waited))));
        let sender = self.sender();
        let sending = async {
            let mut running = FuturesUnordered::new();
            let mut exchanged = Vec::new();
            let mut ended = Vec::new();
            loop {
                tokio::select! {
                    next = told.recv() => match next {
                        Some((item, Waited::Claimed(lead))) if self.sends_each() => {
                            running.extend(self.alone(item).map(|alone| sender.exchange(alone, vec![lead])));
                        }
                        Some(other) => ended.push(other),
                        None => break,
                    },
                    Some(done) = running.next() => exchanged.push(done),
                }
            }
            exchanged.extend(running.collect::<Vec<_>>().await);
            (exchanged, ended)
        };
        let ((), sent) = tokio::join!(waiting, sending);
        sent
    }

    /// What is left after waiting: how the waits ended, and what is claimed and goes out together.
    async fn send_what_became_free(&self, progress: &mut Progress, waited: Vec<(usize, Waited)>) {
        for finding in &mut progress.findings {
            *finding = Finding::Ended;
        }
        for (item, waited) in waited {
            match waited {
                Waited::Claimed(lead) => {
                    progress.findings[item] = Finding::Claimed;
                    progress.places[item] = Some(Place::Lead(lead));
                }
                Waited::Ended(end) => {
                    // Where the rest is sent as it came, what is still open goes along, and is settled with it.
                    if !matches!(end, End::Duplicate(_)) {
                        progress.findings[item] = Finding::Open;
                    }
                    progress.ends[item] = Some(end);
                }
            }
        }
        if progress.findings.contains(&Finding::Claimed)
            && let Plan::Act { exchanges, .. } = plan(&self.items, &progress.findings, self.rules)
        {
            let leads = progress.take_leads(&exchanges);
            let exchanged = self.exchange_all(exchanges, leads).await;
            self.note(progress, exchanged);
        }
    }

    /// Whether each event of this delivery is sent by itself.
    fn sends_each(&self) -> bool {
        self.items.len() == 1 || self.rules.batch == Batching::Split
    }

    /// The exchange of one item by itself.
    fn alone(&self, item: usize) -> Option<Exchange> {
        let mut findings = vec![Finding::Ended; self.items.len()];
        findings[item] = Finding::Claimed;
        match plan(&self.items, &findings, self.rules) {
            Plan::Act { mut exchanges, .. } => exchanges.pop(),
            Plan::Unavailable => None,
        }
    }

    fn sender(&self) -> Sender<'_> {
        Sender { core: self.core, incoming: self.incoming, items: &self.items, claims: &self.claims, pace: &self.pace }
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
        self.core.settler.release_later(&self.claims, claimed, Vec::new(), Ended::Unavailable);
    }

    /// Has all exchanges: those of one conversation one after the other, the others side by side.
    async fn exchange_all(&self, exchanges: Vec<Exchange>, mut leads: Leads) -> Vec<Exchanged> {
        let mut with_leads = |exchange: Exchange| {
            let leads: Vec<Lead> = exchange.items.iter().filter_map(|item| leads[*item].take()).collect();
            (exchange, leads)
        };
        if exchanges.len() <= 1 {
            let mut all = Vec::with_capacity(1);
            for (exchange, leads) in exchanges.into_iter().map(with_leads) {
                all.push(self.sender().exchange(exchange, leads).await);
            }
            return all;
        }
        let chains = chains(exchanges, &self.items, &self.incoming.extraction.events);
        let chains = chains.into_iter().map(|chain| chain.into_iter().map(&mut with_leads).collect()).collect();
        Box::pin(self.exchange_chains(chains)).await
    }

    async fn exchange_chains(&self, chains: Vec<Vec<(Exchange, Vec<Lead>)>>) -> Vec<Exchanged> {
        let ended = join_all(chains.into_iter().map(|chain| async {
            let mut ended = Vec::with_capacity(chain.len());
            for (exchange, leads) in chain {
                ended.push(self.sender().exchange(exchange, leads).await);
            }
            ended
        }));
        ended.await.into_iter().flatten().collect()
    }

    fn note(&self, progress: &mut Progress, exchanged: Vec<Exchanged>) {
        for Exchanged { items, end, cut, answer, cause, status } in exchanged {
            progress.exchanged = Some(end);
            progress.cut |= cut;
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
    /// What is to be waited for, with this delivery's place at each.
    fn take_waits(&mut self, wait: &[usize], items: &[Item]) -> Vec<Wait> {
        let waits = wait.iter().filter_map(|item| {
            let (key, place) = (items[*item].key.clone()?, self.places[*item].take()?);
            Some(Wait { item: *item, key, place })
        });
        waits.collect()
    }

    /// This delivery's places at the events of these exchanges.
    fn take_leads(&mut self, exchanges: &[Exchange]) -> Leads {
        let mut leads: Leads = self.places.iter().map(|_| None).collect();
        for item in exchanges.iter().flat_map(|exchange| &exchange.items) {
            // A place behind another delivery of this gateway stays one: that delivery ends it.
            match self.places[*item].take() {
                Some(Place::Lead(lead)) => leads[*item] = Some(lead),
                other => self.places[*item] = other,
            }
        }
        leads
    }
}
