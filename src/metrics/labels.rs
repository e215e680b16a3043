//! The words that stand in labels: closed lists, so that no label grows with what is sent.

/// How a delivery was answered: the `hookonce-result` header and the metrics' `result` label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryResult {
    /// One exchange with the received bytes.
    First,
    /// Every event was done already.
    Duplicate,
    /// A batch, each claimed event in an exchange of its own.
    Split,
    /// A batch, its claimed events in one exchange.
    Filtered,
    /// An event of it is in flight elsewhere.
    InFlight,
    /// Forwarded without a claim, because no key could be built.
    Unkeyed,
    /// Streamed through: no event.
    Passed,
    /// `mode: observe`.
    Observe,
    /// A method that is not taken.
    Refused,
    /// The signature or token was missing or wrong.
    Unauthorized,
    /// The body is over `max_body`.
    TooLarge,
    /// The process's byte budget is used up, too many deliveries wait, or it is stopping.
    Busy,
    /// The store did not answer.
    StoreUnavailable,
    /// The request was no whole, well-formed HTTP request.
    BadRequest,
    /// No route takes it.
    NoRoute,
    /// Something in the gateway itself broke.
    InternalError,
}

impl DeliveryResult {
    /// Every result, so that each is counted from the start.
    pub const ALL: [Self; 16] = [
        Self::First,
        Self::Duplicate,
        Self::Split,
        Self::Filtered,
        Self::InFlight,
        Self::Unkeyed,
        Self::Passed,
        Self::Observe,
        Self::Refused,
        Self::Unauthorized,
        Self::TooLarge,
        Self::Busy,
        Self::StoreUnavailable,
        Self::BadRequest,
        Self::NoRoute,
        Self::InternalError,
    ];

    /// The word in header, label and log.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Duplicate => "duplicate",
            Self::Split => "split",
            Self::Filtered => "filtered",
            Self::InFlight => "in-flight",
            Self::Unkeyed => "unkeyed",
            Self::Passed => "passed",
            Self::Observe => "observe",
            Self::Refused => "refused",
            Self::Unauthorized => "unauthorized",
            Self::TooLarge => "too-large",
            Self::Busy => "busy",
            Self::StoreUnavailable => "store-unavailable",
            Self::BadRequest => "bad-request",
            Self::NoRoute => "no-route",
            Self::InternalError => "internal-error",
        }
    }
}

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOutcome {
    /// It was sent to the upstream under a claim.
    First,
    /// It was done already.
    Duplicate,
    /// It was still in flight elsewhere when the provider was answered.
    InFlight,
    /// It was sent without a claim.
    Unkeyed,
}

impl EventOutcome {
    pub(super) const ALL: [Self; 4] = [Self::First, Self::Duplicate, Self::InFlight, Self::Unkeyed];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Duplicate => "duplicate",
            Self::InFlight => "in_flight",
            Self::Unkeyed => "unkeyed",
        }
    }
}

/// The store's operations, as the `operation` label names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOperation {
    /// `claim`
    Claim,
    /// `settle`
    Settle,
    /// `release`
    Release,
    /// `renew`
    Renew,
    /// `promote`
    Promote,
    /// `look`
    Look,
    /// `forget`
    Forget,
    /// `health`
    Health,
}

impl StoreOperation {
    pub(super) const ALL: [Self; 8] =
        [Self::Claim, Self::Settle, Self::Release, Self::Renew, Self::Promote, Self::Look, Self::Forget, Self::Health];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Settle => "settle",
            Self::Release => "release",
            Self::Renew => "renew",
            Self::Promote => "promote",
            Self::Look => "look",
            Self::Forget => "forget",
            Self::Health => "health",
        }
    }
}
