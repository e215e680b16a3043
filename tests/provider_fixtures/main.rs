//! What each provider's deliveries hold: from recorded shapes to events and their keys.

mod meta;
mod meta_batches;
