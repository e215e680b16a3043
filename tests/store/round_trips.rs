//! A link that counts round trips: it passes on what one side has to say, and only when that side has fallen silent
//! does it let the other answer.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What comes within this time after the last byte belongs to the same turn.
const SILENCE: Duration = Duration::from_millis(100);

pub struct RoundTrips {
    pub port: u16,
    count: Arc<AtomicUsize>,
}

impl RoundTrips {
    /// Listens, and connects each caller to `server`.
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let (counted, server) = (Arc::clone(&counted), TcpStream::connect(("127.0.0.1", server)).unwrap());
                std::thread::spawn(move || pass_on(caller, server, &counted));
            }
        });
        Self { port, count }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

fn pass_on(mut caller: TcpStream, mut server: TcpStream, count: &AtomicUsize) {
    for side in [&caller, &server] {
        side.set_nodelay(true).unwrap();
    }
    while let Some(said) = hear(&mut caller) {
        count.fetch_add(1, Ordering::SeqCst);
        if server.write_all(&said).is_err() {
            return;
        }
        match hear(&mut server) {
            Some(replied) if caller.write_all(&replied).is_ok() => {}
            _ => return,
        }
    }
}

/// All that one side says until it is silent; `None` when it has gone.
fn hear(side: &mut TcpStream) -> Option<Vec<u8>> {
    let mut heard = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        side.set_read_timeout((!heard.is_empty()).then_some(SILENCE)).unwrap();
        match side.read(&mut part) {
            Ok(0) => return None,
            Ok(read) => heard.extend_from_slice(&part[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Some(heard),
            Err(_) => return None,
        }
    }
}
