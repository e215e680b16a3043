//! What Prometheus scrapes: one struct, made at the start, handed to whoever counts.
//!
//! Every series of every configured route exists at zero from the start, so that an alert on a rate works with the
//! first event. Route names are the only unbounded label, and they come from the configuration. Methods are named
//! after what happened; nobody outside this file knows a series' name.

mod labels;

use std::time::Duration;

use prometheus::{
    Encoder, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};

pub use self::labels::{DeliveryResult, EventOutcome, StoreOperation};

/// The process's metrics that belong to no single route, and the registry that holds all.
pub struct Metrics {
    registry: Registry,
    routes: RouteFamilies,
    store: Vec<StoreMetrics>,
    leases_lost: IntCounter,
    store_losses: IntCounter,
    panics: IntCounter,
    /// Deliveries that the upstream took and that could not be recorded yet.
    pub unsettled: IntGauge,
    store_up: Gauge,
    store_durable: Gauge,
    config_reload_failed: Gauge,
}

/// One operation's series: the round trips that were answered, and the errors by [`STORE_ERROR_KINDS`].
struct StoreMetrics {
    seconds: Histogram,
    errors: Vec<IntCounter>,
}

struct RouteFamilies {
    deliveries: IntCounterVec,
    events: IntCounterVec,
    duplicates: IntCounterVec,
    exchanges: IntCounterVec,
    exchange_seconds: HistogramVec,
    delivery_seconds: HistogramVec,
    in_flight: IntGaugeVec,
    auth_failures: IntCounterVec,
}

/// One route's series, looked up once so that counting is an addition.
pub struct RouteMetrics {
    deliveries: Vec<IntCounter>,
    delivery_seconds: Vec<Histogram>,
    events: Vec<IntCounter>,
    duplicates: IntCounter,
    exchanges: Vec<IntCounter>,
    exchange_seconds: Histogram,
    /// Deliveries of this route that have not been answered yet.
    pub in_flight: IntGauge,
    auth_failures: Vec<(&'static str, IntCounter)>,
}

const OUTCOMES: [&str; 4] = ["delivered", "refused", "not_sent", "unknown"];
const STORE_ERROR_KINDS: [&str; 5] = ["timeout", "unreachable", "refused", "not_durable", "unreadable"];
const HTTP_BUCKETS: [f64; 14] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0, 30.0];
const STORE_BUCKETS: [f64; 10] = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.025, 0.1, 0.5, 2.0];

impl Metrics {
    /// Makes and registers every series that belongs to no route.
    ///
    /// # Errors
    ///
    /// Only if two series had one name, which a test rules out.
    pub fn new(version: &str) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| -> Result<IntCounterVec, prometheus::Error> {
            let family = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok(family)
        };
        let histograms =
            |name: &str, help: &str, labels: &[&str], buckets: &[f64]| -> Result<HistogramVec, prometheus::Error> {
                let family = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?;
                registry.register(Box::new(family.clone()))?;
                Ok(family)
            };
        let gauge = |name: &str, help: &str| -> Result<Gauge, prometheus::Error> {
            let gauge = Gauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };

        let routes = RouteFamilies {
            deliveries: counters(
                "hookonce_deliveries_total",
                "Requests from providers, by how they were answered.",
                &["route", "provider", "result"],
            )?,
            events: counters(
                "hookonce_events_total",
                "Events in verified deliveries, by what became of them.",
                &["route", "provider", "outcome"],
            )?,
            duplicates: counters(
                "hookonce_duplicates_total",
                "Events that were done already and were not sent again.",
                &["route", "provider"],
            )?,
            exchanges: counters(
                "hookonce_exchanges_total",
                "Requests to the upstream, by how they ended.",
                &["route", "outcome"],
            )?,
            exchange_seconds: histograms(
                "hookonce_exchange_seconds",
                "From the start of an exchange to the upstream's final response head.",
                &["route"],
                &HTTP_BUCKETS,
            )?,
            delivery_seconds: histograms(
                "hookonce_delivery_seconds",
                "From the request's head to the last byte of its answer: what the provider waits.",
                &["route", "result"],
                &HTTP_BUCKETS,
            )?,
            in_flight: {
                let opts = Opts::new("hookonce_in_flight", "Deliveries that have not been answered yet.");
                let family = IntGaugeVec::new(opts, &["route"])?;
                registry.register(Box::new(family.clone()))?;
                family
            },
            auth_failures: counters(
                "hookonce_auth_failures_total",
                "Deliveries whose signature or token was missing or wrong.",
                &["route", "reason"],
            )?,
        };
        let store_seconds = histograms(
            "hookonce_store_seconds",
            "Round trips to the store that were answered.",
            &["operation"],
            &STORE_BUCKETS,
        )?;
        let store_errors = counters(
            "hookonce_store_errors_total",
            "Operations that the store did not answer, or answered with an error.",
            &["operation", "kind"],
        )?;
        let store = StoreOperation::ALL.map(|operation| StoreMetrics {
            seconds: store_seconds.with_label_values(&[operation.label()]),
            errors: STORE_ERROR_KINDS.map(|kind| store_errors.with_label_values(&[operation.label(), kind])).into(),
        });
        let leases_lost = IntCounter::new(
            "hookonce_leases_lost_total",
            "Claims that ended, or were taken over, while their exchange was still running.",
        )?;
        registry.register(Box::new(leases_lost.clone()))?;
        let store_losses = IntCounter::new(
            "hookonce_store_losses_total",
            "Times the store came back without a record that it had acknowledged.",
        )?;
        registry.register(Box::new(store_losses.clone()))?;
        let panics = IntCounter::new(
            "hookonce_panics_total",
            "Deliveries that ended in a panic of the gateway: a fault in it.",
        )?;
        registry.register(Box::new(panics.clone()))?;
        let unsettled = IntGauge::new(
            "hookonce_unsettled",
            "Events that the upstream took and whose record the store has not acknowledged yet.",
        )?;
        registry.register(Box::new(unsettled.clone()))?;
        let store_up = gauge("hookonce_store_up", "1 while the store answers.")?;
        let store_durable =
            gauge("hookonce_store_durable", "1 while the store persists what it holds and evicts nothing.")?;
        let config_reload_failed = gauge(
            "hookonce_config_reload_failed",
            "1 while the configuration in the file is not the one that is served, because of its mistakes.",
        )?;
        let build_info =
            GaugeVec::new(Opts::new("hookonce_build_info", "Always 1; the version is its label."), &["version"])?;
        registry.register(Box::new(build_info.clone()))?;
        build_info.with_label_values(&[version]).set(1.0);

        Ok(Self {
            registry,
            routes,
            store: store.into(),
            leases_lost,
            store_losses,
            panics,
            unsettled,
            store_up,
            store_durable,
            config_reload_failed,
        })
    }

    /// The series of one route, all at zero. `auth_reasons` are the reasons a delivery can be unauthorised for.
    #[must_use]
    pub fn route(&self, route: &str, provider: &str, auth_reasons: &[&'static str]) -> RouteMetrics {
        let families = &self.routes;
        RouteMetrics {
            deliveries: DeliveryResult::ALL
                .map(|result| families.deliveries.with_label_values(&[route, provider, result.label()]))
                .into(),
            delivery_seconds: DeliveryResult::ALL
                .map(|result| families.delivery_seconds.with_label_values(&[route, result.label()]))
                .into(),
            events: EventOutcome::ALL
                .map(|outcome| families.events.with_label_values(&[route, provider, outcome.label()]))
                .into(),
            duplicates: families.duplicates.with_label_values(&[route, provider]),
            exchanges: OUTCOMES.map(|outcome| families.exchanges.with_label_values(&[route, outcome])).into(),
            exchange_seconds: families.exchange_seconds.with_label_values(&[route]),
            in_flight: families.in_flight.with_label_values(&[route]),
            auth_failures: auth_reasons
                .iter()
                .map(|reason| (*reason, families.auth_failures.with_label_values(&[route, reason])))
                .collect(),
        }
    }

    /// The store answered an operation.
    pub fn store_answered(&self, operation: StoreOperation, took: Duration) {
        self.store[operation as usize].seconds.observe(took.as_secs_f64());
    }

    /// The store did not answer an operation, or answered with an error.
    pub fn store_failed(&self, operation: StoreOperation, kind: &'static str) {
        if let Some(index) = STORE_ERROR_KINDS.iter().position(|known| *known == kind) {
            self.store[operation as usize].errors[index].inc();
        }
    }

    /// Whether the store answers.
    pub fn set_store_up(&self, up: bool) {
        self.store_up.set(if up { 1.0 } else { 0.0 });
    }

    /// Whether the store keeps what it holds.
    pub fn set_store_durable(&self, durable: bool) {
        self.store_durable.set(if durable { 1.0 } else { 0.0 });
    }

    /// Whether the last attempt to read the configuration anew failed.
    pub fn set_config_reload_failed(&self, failed: bool) {
        self.config_reload_failed.set(if failed { 1.0 } else { 0.0 });
    }

    /// A claim ended, or was taken over, while its exchange was still running.
    pub fn lease_lost(&self) {
        self.leases_lost.inc();
    }

    /// The store came back without a record that it had acknowledged.
    pub fn store_lost_data(&self) {
        self.store_losses.inc();
    }

    /// A delivery ended in a panic.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// Everything, in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = Vec::new();
        // Encoding into memory fails only on a malformed family, and all are made above.
        if TextEncoder::new().encode(&self.registry.gather(), &mut text).is_err() {
            text.clear();
        }
        String::from_utf8(text).unwrap_or_default()
    }
}

impl RouteMetrics {
    /// A delivery was answered.
    pub fn answered(&self, result: DeliveryResult, took: Duration) {
        self.deliveries[result as usize].inc();
        self.delivery_seconds[result as usize].observe(took.as_secs_f64());
    }

    /// Something became of an event.
    pub fn event(&self, outcome: EventOutcome) {
        self.events[outcome as usize].inc();
        if outcome == EventOutcome::Duplicate {
            self.duplicates.inc();
        }
    }

    /// An exchange ended. `label` is one of the four outcomes'.
    pub fn exchanged(&self, label: &'static str, took: Duration) {
        if let Some(index) = OUTCOMES.iter().position(|outcome| *outcome == label) {
            self.exchanges[index].inc();
        }
        self.exchange_seconds.observe(took.as_secs_f64());
    }

    /// A delivery's signature or token was missing or wrong.
    pub fn unauthorized(&self, reason: &'static str) {
        if let Some((_, counter)) = self.auth_failures.iter().find(|(known, _)| *known == reason) {
            counter.inc();
        }
    }
}
