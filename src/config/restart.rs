//! Which changes of a configuration a running process cannot take over.

use super::{Config, Server};

impl Config {
    /// The keys in which this differs from what `running` was started with, and which only a restart can change.
    #[must_use]
    pub fn needs_restart(&self, running: &Self) -> Vec<String> {
        // Taken apart by name, so that a key that comes later is not forgotten here.
        let Server { listen, admin, threads, shutdown_grace, body_budget, body_timeout, log, readiness } =
            &running.server;
        let server = &self.server;
        [
            ("server.listen", server.listen == *listen),
            ("server.admin", server.admin == *admin),
            ("server.threads", server.threads == *threads),
            ("server.shutdown_grace", server.shutdown_grace == *shutdown_grace),
            ("server.body_budget", server.body_budget == *body_budget),
            ("server.body_timeout", server.body_timeout == *body_timeout),
            ("server.log", server.log == *log),
            ("server.readiness", server.readiness == *readiness),
            ("store", self.store == running.store),
        ]
        .into_iter()
        .filter(|(_, same)| !same)
        .map(|(name, _)| name.to_owned())
        .collect()
    }
}
