//! What a route says about its provider: `secret`, `verify`, `key` and `events`.

use std::path::Path;
use std::time::Duration;

use crate::config::Sources;
use crate::config::document::{Fields, Node};
use crate::config::schema::{Encoding, HmacAlgorithm, Provider, ProviderKind, Verify};
use crate::config::values::{self, Secret};

use super::key;

const ALGORITHMS: &[(&str, HmacAlgorithm)] = &[("sha1", HmacAlgorithm::Sha1), ("sha256", HmacAlgorithm::Sha256)];
const ENCODINGS: &[(&str, Encoding)] = &[("hex", Encoding::Hex), ("base64", Encoding::Base64)];

pub(super) fn read(fields: &mut Fields<'_>, kind: ProviderKind) -> Provider {
    let secrets = fields.take("secret").map(|node| secrets(&node)).unwrap_or_default();
    let unsaid = if kind == ProviderKind::None { Verify::Off } else { Verify::Preset };
    let events = fields.take("events");
    let key = fields.take("key").and_then(|node| key::key(&node, events.is_some()));
    Provider {
        kind,
        secrets,
        verify: fields.or("verify", unsaid, verify),
        key,
        events: events.and_then(|node| node.read_text(key::events)),
    }
}

/// One secret or a list of them, all of which are accepted.
fn secrets(node: &Node<'_>) -> Vec<Secret> {
    if !node.is_list() {
        return secret(node).into_iter().collect();
    }
    let items = node.items();
    if items.is_empty() {
        node.problem("must hold at least one secret");
    }
    items.iter().filter_map(secret).collect()
}

/// A secret, as text or as `{file: /run/secrets/x}`.
pub(super) fn secret(node: &Node<'_>) -> Option<Secret> {
    let text = if node.is_mapping() {
        node.fields(|fields| {
            let file = fields.require("file")?;
            file.read_text(|path| secret_file(path, file.report().sources))
        })
    } else {
        node.read_text(values::text)
    };
    text.map(Secret::new)
}

/// The content of a secret's file, without the newline that editors end it with.
fn secret_file(path: &str, sources: &Sources) -> Result<String, String> {
    let content = sources.read(Path::new(path)).map_err(|error| format!("cannot read `{path}`: {error}"))?;
    let secret = content.strip_suffix('\n').unwrap_or(&content);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.is_empty() { Err(format!("`{path}` is empty")) } else { Ok(secret.to_owned()) }
}

fn verify(node: Node<'_>) -> Option<Verify> {
    let forms = "must be `off`, `{token: …}`, `{hmac: …}` or `{jwt: HS256}`";
    if !node.is_mapping() {
        return node.read(|text| match text {
            "off" | "false" => Ok(Verify::Off),
            _ => Err(forms.to_owned()),
        });
    }
    node.fields(|fields| match (fields.take("token"), fields.take("hmac"), fields.take("jwt")) {
        (Some(token), None, None) => token.read_text(key::place).map(Verify::Token),
        (None, Some(hmac), None) => {
            let algorithm = hmac.read(values::word(ALGORITHMS));
            let signature = fields.require("signature").and_then(|node| node.read_text(key::place));
            let encoding = fields.or("encoding", Encoding::Hex, |node| node.read(values::word(ENCODINGS)));
            let prefix = fields.or("prefix", String::new(), |node| node.read_text(|text| Ok(text.to_owned())));
            Some(Verify::Hmac { algorithm: algorithm?, signature: signature?, encoding, prefix })
        }
        (None, None, Some(jwt)) => {
            let algorithm = jwt.read(values::word(&[("HS256", ())]));
            let leeway =
                fields.or("leeway", Duration::from_secs(30 * 60), |node| node.read(values::duration(Duration::ZERO)));
            algorithm.map(|()| Verify::Jwt { leeway })
        }
        _ => {
            fields.problem(forms);
            None
        }
    })
}
