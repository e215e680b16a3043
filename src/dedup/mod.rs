//! The decisions, as pure functions over plain data: no I/O, no clock, nothing of pingora.
//!
//! [`plan`] turns what the claims found into exchanges and waits; [`verdict`] turns how an exchange ended into a
//! settlement, and how all events of a delivery ended into one answer.

pub mod plan;
pub mod verdict;
