//! Reading single values: each function takes a value's text, and says what it must be where it is not.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A secret: it never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(secret)")
    }
}

/// The longest duration, ten years: what is added to a clock or sent to a store stays within their ranges.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A duration of at least `shortest`, with its unit.
pub(super) fn duration(shortest: Duration) -> impl Fn(&str) -> Result<Duration, String> {
    move |text| {
        if text.trim().parse::<f64>().is_ok() {
            return Err("needs a unit, such as `500ms`, `30s` or `7d`".to_owned());
        }
        let duration =
            humantime::parse_duration(text).map_err(|_| "must be a duration, such as `500ms`, `30s` or `7d`")?;
        if duration < shortest {
            return Err(format!("must be at least {}", humantime::format_duration(shortest)));
        }
        if duration > LONGEST {
            return Err("must be at most ten years (3650d)".to_owned());
        }
        Ok(duration)
    }
}

/// A number of bytes, at least one: `4096`, `4MB` (thousands) or `64MiB` (1024s).
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "must be a size in whole bytes, such as `64MiB`, `4MB` or `4096`".to_owned();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
        Some(0) => Err("must be at least one byte".to_owned()),
        Some(size) => Ok(size),
        None => Err(wrong()),
    }
}

/// A whole number within `range`.
pub(super) fn number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String>
where
    T: FromStr + PartialOrd + fmt::Display,
{
    move |text| match text.parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("must be a whole number from {} to {}", range.start(), range.end())),
    }
}

/// One of the words of `choices`. `false` is the word `off`: tools that write YAML turn the one into the other.
pub(super) fn word<T: Copy>(choices: &[(&str, T)]) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let word = if text == "false" { "off" } else { text };
        let chosen = choices.iter().find(|(choice, _)| *choice == word).map(|(_, meaning)| *meaning);
        chosen.ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(choice, _)| format!("`{choice}`")).collect();
            match words.split_last() {
                Some((last, [])) => format!("must be {last}"),
                Some((last, others)) => format!("must be {} or {last}", others.join(", ")),
                None => "cannot be said here".to_owned(),
            }
        })
    }
}

/// Any text that is not empty.
pub(super) fn text(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// A route's name, which becomes a metrics label and a part of keys.
pub(super) fn name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !text.is_empty() && text.bytes().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("must be made of `a` to `z`, `0` to `9` and `-`".to_owned())
    }
}

/// The first word of keys: something that can be typed and that no key pattern takes for a wildcard.
pub(super) fn key_word(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !text.is_empty() && text.bytes().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("must be made of letters, digits, `.`, `_` and `-`".to_owned())
    }
}
