//! A TCP link between two others, which delays, cuts after some bytes, answers late, or is not there.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::support::{free_port, local};

/// What the link does to what passes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// What goes there is held this long.
    pub delay_there: Duration,
    /// What comes back is held this long.
    pub delay_back: Duration,
    /// A connection is cut when this many more bytes have gone there.
    pub cut_there: Option<usize>,
    /// A connection is cut when this many more bytes have come back.
    pub cut_back: Option<usize>,
    /// Connections are cut, and new ones refused.
    pub refuse: bool,
}

type Trap = Box<dyn FnOnce() + Send>;

/// A link. It takes connections on its own address and passes them on.
pub struct Link {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    target: SocketAddr,
    /// Counted, so that a connection notices that it was set anew.
    toll: Mutex<(u64, Toll)>,
    open: Mutex<Vec<TcpStream>>,
    trap: Mutex<Option<Trap>>,
    ended: AtomicBool,
}

impl Link {
    pub fn to(target: SocketAddr) -> Self {
        let address = local(free_port());
        let shared = Arc::new(Shared {
            target,
            toll: Mutex::default(),
            open: Mutex::default(),
            trap: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        let first = listen(address).expect("a free port");
        let inside = Arc::clone(&shared);
        std::thread::spawn(move || accept(first, address, &inside));
        Self { address, shared }
    }

    /// From now on this is done to what passes, also on connections that are open.
    pub fn set(&self, toll: Toll) {
        {
            let mut current = lock(&self.shared.toll);
            *current = (current.0 + 1, toll);
        }
        if toll.refuse {
            self.cut();
        }
    }

    pub fn heal(&self) {
        self.set(Toll::default());
    }

    /// Ends all connections that are open.
    pub fn cut(&self) {
        for stream in lock(&self.shared.open).drain(..) {
            let _already_ended = stream.shutdown(Shutdown::Both);
        }
    }

    /// Springs once, when the next connection comes, before a byte of it has passed.
    pub fn trap(&self, trap: impl FnOnce() + Send + 'static) {
        *lock(&self.shared.trap) = Some(Box::new(trap));
    }

    /// Takes a trap away. `false`: it has sprung.
    pub fn disarm(&self) -> bool {
        lock(&self.shared.trap).take().is_some()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        self.cut();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A link that refuses has no listener, so that whoever connects is told at once that nobody is there.
fn accept(first: TcpListener, address: SocketAddr, shared: &Arc<Shared>) {
    let mut listener = Some(first);
    while !shared.ended.load(Ordering::Acquire) {
        if lock(&shared.toll).1.refuse {
            listener = None;
        } else if listener.is_none() {
            listener = listen(address).ok();
        }
        match listener.as_ref().map(TcpListener::accept) {
            Some(Ok((near, _))) => connect(near, shared),
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn connect(near: TcpStream, shared: &Arc<Shared>) {
    let trap = lock(&shared.trap).take();
    if let Some(trap) = trap {
        trap();
    }
    // Nobody behind the link: the connection ends, as it would with a dead host behind a live address.
    let Ok(far) = TcpStream::connect_timeout(&shared.target, Duration::from_secs(1)) else { return };
    let joined = near.set_nonblocking(false).and_then(|()| {
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let mut open = lock(&shared.open);
        open.retain(|stream| stream.peer_addr().is_ok());
        open.extend([near.try_clone()?, far.try_clone()?]);
        Ok((near.try_clone()?, far.try_clone()?))
    });
    let Ok((near_too, far_too)) = joined else { return };
    let (there, back) = (Arc::clone(shared), Arc::clone(shared));
    std::thread::spawn(move || pump(near, far, &there, |toll| (toll.delay_there, toll.cut_there)));
    std::thread::spawn(move || pump(far_too, near_too, &back, |toll| (toll.delay_back, toll.cut_back)));
}

/// Passes one direction on until it ends or is cut; then both directions end.
fn pump(mut from: TcpStream, mut to: TcpStream, shared: &Shared, of: fn(&Toll) -> (Duration, Option<usize>)) {
    let mut seen = 0;
    let mut passed = 0;
    let mut piece = [0; 16 * 1024];
    while let Ok(length) = from.read(&mut piece) {
        let (number, toll) = *lock(&shared.toll);
        if number != seen {
            (seen, passed) = (number, 0);
        }
        let (delay, cut) = of(&toll);
        if length == 0 || toll.refuse {
            break;
        }
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        let most = cut.map_or(length, |cut| cut.saturating_sub(passed).min(length));
        passed += most;
        if to.write_all(&piece[..most]).is_err() || most < length {
            break;
        }
    }
    let _already_ended = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::support::provider::{self, Request};
    use crate::support::upstream::Upstream;
    use crate::support::wire::Connection;

    fn attempt(link: &Link) -> io::Result<bool> {
        let mut connection = Connection::open(link.address)?;
        connection.write(&Request::post("/", "{}").head_bytes())?;
        connection.write(b"{}")?;
        Ok(connection.read_head()?.is_some())
    }

    #[test]
    fn a_link_passes_delays_cuts_and_is_not_there() {
        let upstream = Upstream::start();
        let link = Link::to(upstream.address);
        assert_eq!(provider::send(link.address, &Request::post("/", "{}")).status, 200);

        let late = Duration::from_millis(200);
        link.set(Toll { delay_back: late, ..Toll::default() });
        let asked = Instant::now();
        assert_eq!(provider::send(link.address, &Request::post("/", "{}")).status, 200);
        assert!(asked.elapsed() >= late);
        assert_eq!(upstream.count(), 2);

        link.set(Toll { cut_back: Some(5), ..Toll::default() });
        assert!(attempt(&link).is_err());
        assert_eq!(upstream.count(), 3);
        link.set(Toll { cut_there: Some(5), ..Toll::default() });
        assert!(!matches!(attempt(&link), Ok(true)));
        assert_eq!(upstream.count(), 3);

        link.set(Toll { refuse: true, ..Toll::default() });
        crate::support::eventually("a refusal", || Connection::open(link.address).is_err().then_some(()));
        link.heal();
        crate::support::eventually("a connection", || Connection::open(link.address).ok());
        assert_eq!(provider::send(link.address, &Request::post("/", "{}")).status, 200);
    }
}
