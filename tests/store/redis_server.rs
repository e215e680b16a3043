//! A Redis of one's own: on a free port, in a folder that goes with it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hookonce::config;

/// How long anything that should happen may take to happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct RedisServer {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
    settings: Vec<String>,
}

impl RedisServer {
    /// Starts a durable one; `settings` are further `--name value` arguments, which win over that.
    pub fn start(settings: &[&str]) -> Self {
        Self::start_on(free_port(), settings)
    }

    pub fn start_on(port: u16, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let process = spawn(port, &folder, &settings);
        let mut server = Self { process, port, folder, settings };
        server.wait_until_up();
        server
    }

    /// Starts the same server again on the same port and data, once it was killed.
    pub fn restart(&mut self) {
        self.process = spawn(self.port, &self.folder, &self.settings);
        self.wait_until_up();
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Stops it in the middle of whatever it does: connections stay open, and nobody answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn config(&self) -> config::Redis {
        config_for(self.port)
    }

    /// The reply to a command, whatever it is, as far as one line tells.
    pub fn say<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", self.port)).unwrap();
        let mut connection = client.get_connection().unwrap();
        let mut said = redis::cmd(command[0]);
        said.arg(&command[1..]);
        said.query(&mut connection).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    fn wait_until_up(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !answers(self.port) {
            if let Some(status) = self.process.try_wait().unwrap() {
                panic!("redis-server ended with {status}");
            }
            assert!(Instant::now() < deadline, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn config_for(port: u16) -> config::Redis {
    config::Redis {
        url: config::Secret::new(format!("redis://127.0.0.1:{port}/0")),
        password: None,
        prefix: "dedup".into(),
        persistence: config::Persistence::Require,
        timeout: Duration::from_secs(5),
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(port: u16, folder: &tempfile::TempDir, settings: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--save", "", "--appendonly", "yes", "--dir"])
        .arg(folder.path())
        .args(settings)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("these tests need `redis-server` (Debian: apt-get install redis-server): {error}")
        })
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut reply = [0; 64];
    stream.write_all(b"PING\r\n").is_ok()
        && stream
            .read(&mut reply)
            .is_ok_and(|read| reply[..read].starts_with(b"+PONG") || reply[..read].starts_with(b"-NOAUTH"))
}
