//! The hash of a value, equal for equal values whatever the order of their names, their spacing and their escapes:
//! those may change from one delivery of an event to the next. Names are sorted, and every text stands behind its
//! length.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::Text;
use super::scan::Kind;

/// Holds the values of a name that occurs more than once, so that different contents still have different hashes.
const REPEATED: &str = "\u{0}repeated";

/// How deep a value may be nested: what hashes it calls itself for each level.
const DEEPEST: usize = 127;

/// The SHA-256 in lower-case hexadecimal; `None` for a value nested too deep.
pub(super) fn sha256(value: Text<'_>) -> Option<String> {
    let mut hash = Sha256::new();
    match value.repeated() {
        Some(values) => add_repeated(&mut hash, &values, DEEPEST)?,
        None => add(&mut hash, value, DEEPEST)?,
    }
    Some(HEXLOWER.encode(&hash.finalize()))
}

fn add(hash: &mut Sha256, value: Text<'_>, depth: usize) -> Option<()> {
    match value.node().kind {
        Kind::Null => hash.update(b"n"),
        Kind::Boolean => hash.update(&value.written()[..1]),
        Kind::Number => add_text(hash, b'd', &value.decoded()?),
        Kind::String | Kind::Escaped => add_text(hash, b's', &value.decoded()?),
        Kind::Array => {
            let depth = depth.checked_sub(1)?;
            hash.update(format!("[{}:", value.elements().count()));
            for element in value.elements() {
                add(hash, element, depth)?;
            }
        }
        Kind::Object => {
            let depth = depth.checked_sub(1)?;
            let mut members = value.members().map(|member| (member.name(), member.value)).collect::<Vec<_>>();
            // Stable, so that the values of one name stay in their order.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            let names: Vec<_> = members.chunk_by(|(one, _), (other, _)| one == other).collect();
            hash.update(format!("{{{}:", names.len()));
            for values in names {
                add_text(hash, b's', &values[0].0);
                match values {
                    [(_, value)] => add(hash, *value, depth)?,
                    _ => add_repeated(hash, &values.iter().map(|(_, value)| *value).collect::<Vec<_>>(), depth)?,
                }
            }
        }
    }
    Some(())
}

/// An object with one name, whose value is the array of these values.
fn add_repeated(hash: &mut Sha256, values: &[Text<'_>], depth: usize) -> Option<()> {
    hash.update("{1:");
    add_text(hash, b's', REPEATED);
    hash.update(format!("[{}:", values.len()));
    values.iter().try_for_each(|value| add(hash, *value, depth))
}

fn add_text(hash: &mut Sha256, kind: u8, text: &str) {
    hash.update([kind]);
    hash.update(format!("{}:", text.len()));
    hash.update(text);
}
