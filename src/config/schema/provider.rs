//! What a route says about its provider: who sends, what is verified, what makes a key.

use std::time::Duration;

use crate::config::Secret;

/// Everything about a route that its provider file needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// `provider`
    pub kind: ProviderKind,
    /// `secret`: one or several, all of which are accepted (rotation).
    pub secrets: Vec<Secret>,
    /// `verify`
    pub verify: Verify,
    /// `key`: overrides the preset's parts.
    pub key: Option<Vec<KeyPart>>,
    /// `events`: the JSONPath that finds the elements of a batch.
    pub events: Option<String>,
}

/// `routes[].provider`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// `none`: streamed through, no claim, no limit.
    None,
    /// `stripe`
    Stripe,
    /// `hotmart`
    Hotmart,
    /// `meta`
    Meta,
    /// `evolution`
    Evolution,
    /// `marcha`
    Marcha,
    /// `generic`
    Generic,
}

impl ProviderKind {
    /// The word in the file, the metrics and the log.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Stripe => "stripe",
            Self::Hotmart => "hotmart",
            Self::Meta => "meta",
            Self::Evolution => "evolution",
            Self::Marcha => "marcha",
            Self::Generic => "generic",
        }
    }
}

/// `routes[].verify`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verify {
    /// Not said: the provider's own scheme (stripe, hotmart, meta).
    Preset,
    /// `off`, or `false` (YAML written by other tools turns `off` into it).
    Off,
    /// `{token: header:X-Token}` or `{token: query:token}`: compared with the secrets in constant time.
    Token(Place),
    /// `{hmac: sha256, signature: header:X-Signature, encoding: hex, prefix: 'sha256='}` over the raw body.
    Hmac {
        /// `hmac`
        algorithm: HmacAlgorithm,
        /// `signature`: where it stands.
        signature: Place,
        /// `encoding`, default `hex`.
        encoding: Encoding,
        /// `prefix` before the encoded signature, default none.
        prefix: String,
    },
    /// `{jwt: HS256, leeway: 30m}`: `Authorization: Bearer`, which does not cover the body.
    Jwt {
        /// How long after `exp` a token is still taken. Default 30 min.
        leeway: Duration,
    },
}

/// Where a value stands in the request: `header:X-Name` or `query:name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `header:`
    Header(String),
    /// `query:`
    Query(String),
}

/// `verify.hmac`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacAlgorithm {
    /// `sha1`
    Sha1,
    /// `sha256`
    Sha256,
}

/// `verify.encoding`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `hex`, either case.
    Hex,
    /// `base64`, the standard alphabet with padding.
    Base64,
}

/// One entry of `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// The entry as written, without its `?`: names the part in logs and errors.
    pub written: String,
    /// Where the part comes from.
    pub source: KeySource,
    /// A trailing `?`: the part may be absent.
    pub optional: bool,
}

/// Where a part of a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// `$…`: a JSONPath into the body.
    Body(String),
    /// `@…`, under `events`: a JSONPath into the element, kept here as `$…`.
    Item(String),
    /// `header:<Name>`
    Header(String),
    /// `query:<name>`
    Query(String),
    /// `'literal'`
    Literal(String),
}
