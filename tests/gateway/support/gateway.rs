//! The gateway: the real binary, with a configuration, ports and a folder of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::provider::{self, Answer, Line, Request};
use super::route::Route;
use super::store::Store;
use super::wire::Connection;
use super::{eventually, free_port, local};

/// The binary under test.
pub fn hookonce() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookonce"));
    command.stdin(Stdio::null());
    command
}

/// A configuration in a folder of its own.
pub struct Site {
    folder: TempDir,
    pub port: u16,
    pub admin: u16,
}

impl Site {
    /// `server` holds further lines of that section, such as `body_timeout: 1s`.
    pub fn new(store: &Store, server: &[&str], routes: &[Route]) -> Self {
        let site = Self { folder: tempfile::tempdir().expect("a folder"), port: free_port(), admin: free_port() };
        let mut text =
            format!("server:\n  listen: 127.0.0.1:{}\n  admin: 127.0.0.1:{}\n  threads: 2\n", site.port, site.admin);
        for line in server {
            text.push_str(&format!("  {line}\n"));
        }
        text.push_str(&store.section());
        text.push_str("routes:\n");
        for route in routes {
            text.push_str(&route.entry());
        }
        std::fs::write(site.config(), text).expect("a configuration");
        site
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join("hookonce.yaml")
    }

    /// Changes the text of the configuration, in place.
    pub fn edit(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.config()).expect("a configuration");
        assert!(text.contains(from), "`{from}` is not in:\n{text}");
        std::fs::write(self.config(), text.replace(from, to)).expect("written");
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self) -> Command {
        let mut command = hookonce();
        command.args(["run", "--config"]).arg(self.config()).current_dir(self.folder.path());
        command
    }

    /// Runs a gateway that is expected to end by itself.
    pub fn run_to_its_end(&self) -> Output {
        let mut child =
            self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let start = Instant::now();
        while child.try_wait().expect("a state").is_none() {
            if start.elapsed() > super::DEADLINE {
                child.kill().expect("a signal");
                let output = child.wait_with_output().expect("its output");
                panic!("the gateway did not end:\n{}", String::from_utf8_lossy(&output.stderr));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().expect("its output")
    }
}

pub struct Gateway {
    pub site: Site,
    process: Mutex<Child>,
    log: Arc<Mutex<String>>,
}

impl Gateway {
    /// Starts one and waits until it is ready.
    pub fn start(store: &Store, routes: &[Route]) -> Self {
        Self::start_with(store, &[], routes)
    }

    /// The same with further lines of the `server` section.
    pub fn start_with(store: &Store, server: &[&str], routes: &[Route]) -> Self {
        let site = Site::new(store, server, routes);
        let log = Arc::new(Mutex::new(String::new()));
        let process = Mutex::new(spawn(&site, &log));
        let gateway = Self { site, process, log };
        gateway.wait_until_ready();
        gateway
    }

    pub fn address(&self) -> SocketAddr {
        local(self.site.port)
    }

    pub fn send(&self, request: &Request) -> Answer {
        provider::send(self.address(), request)
    }

    /// Sends a request whose answer is for later.
    pub fn begin(&self, request: &Request) -> Line {
        Line::begin(self.address(), request)
    }

    /// Waits until this many deliveries are on their way, over all routes.
    pub fn wait_for_in_flight(&self, count: usize) {
        self.wait_for_metric("hookonce_in_flight", count as f64);
    }

    /// GET on the admin listener.
    pub fn admin(&self, path: &str) -> Answer {
        provider::send(local(self.site.admin), &Request::new("GET", path, "").header("Connection", "close"))
    }

    /// The sum of all series with this name and at least these labels: `name` or `name{label="value"}`.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.admin("/metrics").text();
        let (name, labels) = split_series(series);
        let found: Vec<f64> = text
            .lines()
            .filter_map(|line| line.rsplit_once(' '))
            .filter(|(other, _)| {
                let (other_name, other_labels) = split_series(other);
                other_name == name && labels.iter().all(|label| other_labels.contains(label))
            })
            .map(|(_, value)| value.parse().expect("a number"))
            .collect();
        assert!(!found.is_empty(), "there is no series `{series}` in:\n{text}");
        found.iter().sum()
    }

    /// Waits until a metric has this value.
    pub fn wait_for_metric(&self, series: &str, value: f64) {
        eventually(&format!("{series} {value}"), || (self.metric(series) == value).then_some(()));
    }

    pub fn log(&self) -> String {
        lock(&self.log).clone()
    }

    /// Waits for a line of the log that has all of these words, and returns it.
    pub fn wait_for_log(&self, words: &[&str]) -> String {
        eventually(&format!("a log line with {words:?}"), || {
            let log = self.log();
            log.lines().find(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned)
        })
    }

    /// Ends it with SIGKILL.
    pub fn kill(&self) {
        let mut process = lock(&self.process);
        process.kill().expect("a signal");
        process.wait().expect("an exit");
    }

    /// Starts it again after it has ended, with the same files and ports.
    pub fn start_again(&self) {
        *lock(&self.process) = spawn(&self.site, &self.log);
        self.wait_until_ready();
    }

    /// Asks it to stop.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to read its configuration anew.
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&lock(&self.process)), signal).expect("a signal");
    }

    /// How many bytes of memory the process holds.
    pub fn resident_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", lock(&self.process).id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
    }

    /// Waits until the process has ended by itself.
    pub fn wait_for_end(&self) -> ExitStatus {
        eventually("the end of the gateway", || lock(&self.process).try_wait().expect("a state"))
    }

    /// Whether the process is still there.
    pub fn is_running(&self) -> bool {
        lock(&self.process).try_wait().expect("a state").is_none()
    }

    /// Waits until no new connection is taken.
    pub fn wait_until_closed(&self) {
        eventually("the end of listening", || Connection::open(self.address()).is_err().then_some(()));
    }

    fn wait_until_ready(&self) {
        eventually("a ready gateway", || {
            let ended = lock(&self.process).try_wait().expect("a state");
            assert!(ended.is_none(), "the gateway ended at its start: {ended:?}\n{}", self.log());
            let mut connection = Connection::open(local(self.site.admin)).ok()?;
            connection.write(b"GET /readyz HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n").ok()?;
            let head = connection.read_head().ok()??;
            (head.start_line().starts_with("HTTP/1.1 200") && Connection::open(self.address()).is_ok()).then_some(())
        });
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- the gateway's log\n{}---", self.log());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn spawn(site: &Site, log: &Arc<Mutex<String>>) -> Child {
    let mut child = site.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let stderr = child.stderr.take().expect("its stderr");
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let mut log = lock(&log);
            log.push_str(&line);
            log.push('\n');
        }
    });
    child
}

/// `name{a="b",c="d"}` as a name and its labels. Values with a comma do not occur.
fn split_series(series: &str) -> (&str, Vec<&str>) {
    match series.split_once('{') {
        Some((name, labels)) => (name, labels.trim_end_matches('}').split(',').collect()),
        None => (series, Vec::new()),
    }
}
