//! The routes that are served now. They can be replaced while deliveries are in flight: each delivery keeps the route
//! it came in by until it has ended.

use std::sync::Arc;

use arc_swap::ArcSwap;
use pingora::connectors::TransportConnector;

use super::upstream::Upstream;
use crate::config;
use crate::metrics::{Metrics, RouteMetrics};
use crate::provider::{AuthFailure, Provider};
use crate::route::{self, NotNormal, Route};

/// A route with what it needs to serve.
pub(super) struct ServedRoute {
    pub(super) config: config::Route,
    pub(super) provider: Option<Arc<dyn Provider>>,
    pub(super) upstream: Upstream,
    pub(super) metrics: RouteMetrics,
}

pub(super) struct Routes {
    current: ArcSwap<Vec<Arc<ServedRoute>>>,
    connector: Arc<TransportConnector>,
    metrics: Arc<Metrics>,
}

impl Routes {
    pub(super) fn new(routes: Vec<Route>, metrics: Arc<Metrics>) -> Self {
        let connector = Arc::new(TransportConnector::new(None));
        let served = Self { current: ArcSwap::default(), connector, metrics };
        served.replace(routes);
        served
    }

    /// The route that takes a request, if there is one.
    pub(super) fn find(&self, host: Option<&str>, path: &str) -> Result<Option<Arc<ServedRoute>>, NotNormal> {
        let routes = self.current.load();
        let found = route::find(routes.iter().map(|route| &route.config), host, path)?;
        Ok(found.map(|index| Arc::clone(&routes[index])))
    }

    /// The name of the keyed route whose path `path` only spells in another way ([`route::spelled_otherwise`]).
    pub(super) fn spelled_otherwise(&self, host: Option<&str>, path: &str) -> Option<String> {
        let routes = self.current.load();
        route::spelled_otherwise(routes.iter().map(|route| &route.config), host, path).map(|route| route.name.clone())
    }

    /// Serves `routes` from now on. One that is as it was stays the same, with the connections it has.
    pub(super) fn replace(&self, routes: Vec<Route>) {
        let before = self.current.load();
        let serve = |Route { config, provider }: Route| match before.iter().find(|served| served.config == config) {
            Some(served) => Arc::clone(served),
            None => Arc::new(ServedRoute {
                upstream: Upstream::new(config.upstream.clone(), Arc::clone(&self.connector)),
                metrics: self.metrics.route(
                    &config.name,
                    config.provider.kind.label(),
                    &AuthFailure::ALL.map(AuthFailure::label),
                ),
                provider,
                config,
            }),
        };
        self.current.store(Arc::new(routes.into_iter().map(serve).collect()));
    }
}
