//! Cutting a batch into parts.
use bytes::Bytes;

/// How to make a body that holds only some of a delivery's events.
#[derive(Clone, Debug)]
pub struct Batch {}

impl Batch {
    /// The body with only the events at these indices of [`Extraction::events`](super::Extraction::events).
    #[must_use]
    pub fn part(&self, events: &[usize]) -> Bytes {
        todo!()
    }
}
