//! The upstream's addresses: names are looked up without blocking, and remembered for a moment.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a looked-up name is used. Short, since a Kubernetes Service or a restarted container moves.
const REMEMBERED: Duration = Duration::from_secs(5);

/// Where an upstream is.
pub(super) struct Addresses {
    host: String,
    port: u16,
    known: Mutex<Option<Known>>,
}

struct Known {
    addresses: Arc<[SocketAddr]>,
    /// `None`: the host is an address, which stays what it is.
    looked_up: Option<Instant>,
}

impl Addresses {
    pub(super) fn new(host: &str, port: u16) -> Self {
        let literal = host
            .parse::<IpAddr>()
            .ok()
            .map(|address| Known { addresses: Arc::from([SocketAddr::new(address, port)]), looked_up: None });
        Self { host: host.to_owned(), port, known: Mutex::new(literal) }
    }

    /// The addresses, in the order in which they are to be tried; or why there are none.
    pub(super) async fn get(&self) -> Result<Arc<[SocketAddr]>, String> {
        if let Some(Known { addresses, looked_up }) = &*self.known.lock().unwrap_or_else(PoisonError::into_inner)
            && looked_up.is_none_or(|at| at.elapsed() < REMEMBERED)
        {
            return Ok(Arc::clone(addresses));
        }
        let found = tokio::net::lookup_host((self.host.as_str(), self.port))
            .await
            .map_err(|error| format!("the name `{}` was not found: {error}", self.host))?;
        let addresses: Arc<[SocketAddr]> = found.collect();
        let known = Known { addresses: Arc::clone(&addresses), looked_up: Some(Instant::now()) };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(addresses)
    }
}
