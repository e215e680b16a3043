//! The kit: real processes and real sockets around one gateway.
//!
//! - [`gateway::Gateway`] is the real binary with a configuration of its own,
//! - [`redis::Redis`] is a real Redis of its own,
//! - [`upstream::Upstream`] is the handler, which answers as a test tells it to and remembers every byte it got,
//! - [`provider`] sends deliveries as bytes on a socket, and breaks off where a test says so.
//!
//! Nothing here sleeps to be sure. Whatever takes time is waited for with [`eventually`].

pub mod gateway;
pub mod provider;
pub mod redis;
pub mod route;
pub mod store;
pub mod upstream;
pub mod wire;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Generous, because it only ends tests that fail.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Waits until `condition` gives something, and panics with `what` if it never does.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A port on which nothing listens, for a process that has to be told its port.
///
/// They lie below the range that the system gives to outgoing connections, and each is given out once, so nothing else
/// takes one between its choice and its use.
pub fn free_port() -> u16 {
    static OFFSET: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % 97) as u16 * 100;
    loop {
        let port = 20_000 + (start + OFFSET.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if TcpListener::bind(local(port)).is_ok() {
            return port;
        }
    }
}

pub fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
