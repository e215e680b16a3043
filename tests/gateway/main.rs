//! What a running gateway promises: real processes, real bytes on real sockets.
//!
//! One file for each theme; `support` is the kit they share.

mod kit;
mod support;
