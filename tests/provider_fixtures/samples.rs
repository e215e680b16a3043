//! Samples of other people's deliveries, which lie beside the project where they are at hand and are no part of it.

use super::*;

/// Samples whose events have no key, each for a reason.
const UNKEYED: [&str; 0] = [];

/// Samples that show one event in the shapes of two versions.
const SAME: [&str; 2] = ["evolution/CODE_messages.update_READ.json", "evolution/CODE_messages.update_v18.json"];

#[test]
fn every_sample_has_keys_or_is_listed() {
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/payloads");
    for kind in [ProviderKind::Stripe, ProviderKind::Hotmart, ProviderKind::Evolution, ProviderKind::Marcha] {
        let Ok(folder) = std::fs::read_dir(samples.join(kind.label())) else { continue };
        let provider = plain(kind);
        let mut seen = std::collections::HashMap::new();
        for entry in folder {
            let path = entry.unwrap().path();
            let name = format!("{}/{}", kind.label(), path.file_name().unwrap().display());
            for event in Sent::body(std::fs::read(&path).unwrap()).events(&*provider) {
                match event.key {
                    Ok(key) => {
                        let earlier = seen.insert(key.clone(), name.clone());
                        assert!(earlier.is_none() || SAME.contains(&&*name), "{name}: {earlier:?} has {key} too");
                    }
                    Err(reason) => assert!(UNKEYED.contains(&&*name), "{name}: {reason}"),
                }
            }
        }
    }
}
