//! What belongs to one connection and never goes on to the next (RFC 9110, section 7.6.1), the same in both directions.

use bytes::{BufMut, BytesMut};
use http::{HeaderMap, header};

/// Fields that speak of the connection they came over, under their known names; others are named by `Connection`.
const OF_ONE_HOP: [&str; 7] =
    ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

/// Fields that go on even where `Connection` names them, see [`nominated`].
const STAYS: [&str; 2] = ["host", "content-length"];

/// Whether a field stays behind. `nominated` are those that `Connection` names.
pub(super) fn is_of_one_hop(name: &[u8], nominated: &[&str]) -> bool {
    let is = |other: &&str| name.eq_ignore_ascii_case(other.as_bytes());
    OF_ONE_HOP.iter().any(is) || nominated.iter().any(is)
}

/// The fields that `Connection` names as belonging to it. A sender that names the host or a signature there would have
/// the handler lose what it needs to verify, and one that names the length would have no end to its body: those stay.
pub(super) fn nominated(headers: &HeaderMap) -> Vec<&str> {
    if !headers.contains_key(header::CONNECTION) {
        return Vec::new();
    }
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).map(str::trim);
    names
        .filter(|name| !STAYS.iter().any(|stays| name.eq_ignore_ascii_case(stays)))
        .filter(|name| !name.to_ascii_lowercase().contains("signature"))
        .collect()
}

/// Writes one line of a head.
pub(super) fn put_header(wire: &mut BytesMut, name: &[u8], value: &[u8]) {
    wire.put_slice(name);
    wire.put_slice(b": ");
    wire.put_slice(value);
    wire.put_slice(b"\r\n");
}
