//! Reading the configuration anew while the gateway runs: at SIGHUP, and when its file or one of its secrets' changes.
//!
//! Only routes are replaced. What the process was built from (listeners, threads, the store, the log) stays until it
//! is started again, which is said. A file with mistakes changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tracing::{error, info, warn};

use crate::config::{self, Config, Loaded, Problems, Sources, UnknownOutcome};
use crate::metrics::Metrics;
use crate::proxy::Gateway;
use crate::route::Route;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long changed files must stay as they are before they are read: an editor may be in the middle of one.
const SETTLED: Duration = Duration::from_millis(300);

/// What is needed to read the configuration anew.
pub(super) struct Reload {
    path: PathBuf,
    running: Config,
    sources: Sources,
    gateway: Gateway,
    metrics: Arc<Metrics>,
}

impl Reload {
    pub(super) fn new(path: &Path, running: Config, sources: Sources, gateway: Gateway, metrics: Arc<Metrics>) -> Self {
        Self { path: path.to_owned(), running, sources, gateway, metrics }
    }

    /// Goes on for as long as the process runs.
    pub(super) async fn watch(mut self, mut hang_up: Signal) {
        loop {
            tokio::select! {
                _ = hang_up.recv() => self.read_anew(),
                () = tokio::time::sleep(LOOK) => {
                    if has_changed(self.sources.clone()).await {
                        self.read_anew();
                    }
                }
            }
        }
    }

    fn read_anew(&mut self) {
        let (loaded, mut sources) = config::load_watched(&self.path);
        if loaded.is_err() {
            sources.add(&self.sources.now());
        }
        self.sources = sources;
        let taken = loaded.and_then(|loaded| self.take(loaded));
        self.metrics.set_config_reload_failed(taken.is_err());
        if let Err(Problems(problems)) = taken {
            for problem in problems {
                error!(%problem, "the configuration was not read anew: what was served before is served on");
            }
        }
    }

    fn take(&mut self, Loaded { config: read, warnings }: Loaded) -> Result<(), Problems> {
        let mut next = Config { routes: read.routes.clone(), ..self.running.clone() };
        let kept = keep_terms(&self.running, &mut next);
        // The routes may have been right only together with what needs a restart.
        config::judge(&next)?;
        for warning in warnings {
            warn!(%warning, "the configuration was read anew");
        }
        for name in kept.into_iter().chain(read.needs_restart(&self.running)) {
            warn!(name, "this change is ignored until hookonce is started again");
        }
        let changed = next.routes != self.running.routes;
        if changed {
            self.gateway.replace_routes(next.routes.iter().cloned().map(Route::new).collect());
        }
        self.running = next;
        info!(routes = self.running.routes.len(), changed, "the configuration was read anew");
        Ok(())
    }
}

/// Whether the files are no longer as they were read, and have stayed so for a moment.
async fn has_changed(read: Sources) -> bool {
    let mut seen = read.now();
    while !seen.same_as(&read) {
        tokio::time::sleep(SETTLED).await;
        let now = read.now();
        if now.same_as(&seen) {
            return true;
        }
        seen = now;
    }
    false
}

/// Under `suppress`, a key that is being sent is known to be alive by its window and its lease. Whoever read it with
/// others could take a living sender for a dead one, so these stay while the process that sends does. Answers which
/// changes are ignored.
fn keep_terms(running: &Config, next: &mut Config) -> Vec<String> {
    let mut kept = Vec::new();
    for route in &mut next.routes {
        let Some(before) = running.routes.iter().find(|before| before.name == route.name) else { continue };
        if ![before.unknown_outcome, route.unknown_outcome].contains(&UnknownOutcome::Suppress) {
            continue;
        }
        for (name, old, new) in
            [("window", before.window, &mut route.window), ("lease", before.lease, &mut route.lease)]
        {
            if *new != old {
                *new = old;
                kept.push(format!("{name} of route {} (unknown_outcome: suppress)", route.name));
            }
        }
    }
    kept
}
