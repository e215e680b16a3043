//! The query of a request, as a place where tokens, signatures and parts of keys stand.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::AuthFailure;

/// Every value of a name, percent-decoded; `None` for one that is not text. A `+` is a plus: senders write it
/// unescaped into base64, and whoever means a space may write `%20`.
pub(super) fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = Option<Cow<'a, str>>> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(move |(written, _)| percent_decode_str(written).decode_utf8().is_ok_and(|decoded| decoded == name))
        .map(|(_, value)| percent_decode_str(value).decode_utf8().ok())
}

/// The value of a name that must be there once.
pub(super) fn single<'a>(query: &'a str, name: &'a str) -> Result<Cow<'a, str>, AuthFailure> {
    let mut found = values(query, name);
    match (found.next(), found.next()) {
        (Some(value), None) => value.ok_or(AuthFailure::Malformed),
        _ => Err(AuthFailure::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_decoded_and_counts_only_once() {
        let table = [
            ("token=a", Ok("a")),
            ("x=1&token=a%20b%2B%C3%A9&y", Ok("a b+é")),
            ("%74oken=a+b==", Ok("a+b==")),
            ("token", Ok("")),
            ("", Err(AuthFailure::Missing)),
            ("Token=a", Err(AuthFailure::Missing)),
            ("token=a&token=a", Err(AuthFailure::Missing)),
            ("token=a&toke%6e=a", Err(AuthFailure::Missing)),
            ("token=%ff", Err(AuthFailure::Malformed)),
        ];
        for (query, expected) in table {
            assert_eq!(single(query, "token"), expected.map(Cow::from), "{query}");
        }
    }
}
