//! The place where a reader tries the commands: a folder with the shipped configurations, a gateway and the sample
//! handler behind it, all on ports of their own.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::shown::root;

/// Generous, because it only ends tests that fail.
const DEADLINE: Duration = Duration::from_secs(60);

/// A gateway and the sample handler, in a folder with the shipped configurations.
pub struct Site {
    folder: TempDir,
    /// Each port that is written down, and the one that is used in its place.
    ports: [(u16, u16); 3],
    running: Vec<Child>,
}

impl Site {
    pub fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = [8080, 9090, 3000].map(|port| (port, free_port()));
        let mut site = Self { folder, ports, running: Vec::new() };
        fs::create_dir(site.path("conf")).expect("a folder");
        for entry in fs::read_dir(root().join("conf")).expect("the shipped configurations") {
            let file = entry.expect("an entry").path();
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            site.write(&format!("conf/{name}"), &site.with_own_ports(&fs::read_to_string(&file).expect("a text")));
        }
        let [(_, gateway), (_, admin), (_, handler)] = site.ports;
        site.spawn("handler", &["echo", "--listen", &format!("127.0.0.1:{handler}")]);
        site.spawn("gateway", &["run", "--config", &format!("conf/{config}")]);
        for port in [gateway, admin, handler] {
            eventually(&format!("a listener on {port}"), || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        }
        site
    }

    fn spawn(&mut self, name: &str, arguments: &[&str]) {
        let file = |suffix: &str| File::create(self.path(&format!("{name}.{suffix}"))).expect("a file");
        let mut command = hookonce();
        command.args(arguments).current_dir(self.folder.path()).stdout(file("out")).stderr(file("err"));
        self.running.push(command.spawn().expect("the binary starts"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("gateway.err")).expect("a text")
    }

    pub fn handlers_print(&self) -> String {
        fs::read_to_string(self.path("handler.out")).expect("a text")
    }

    /// Runs lines of a shell as somebody in this folder would type them, and gives what the terminal would show.
    pub fn run(&self, commands: &str) -> String {
        let programs = Path::new(env!("CARGO_BIN_EXE_hookonce")).parent().expect("a folder");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = without_own_variables(Command::new("sh"));
        // As on a terminal, both streams arrive in the order of their writing; curl's progress is not part of it.
        shell.args([
            "-c",
            &format!("exec 2>&1\ncurl() {{ command curl -s \"$@\"; }}\n{}", self.with_own_ports(commands)),
        ]);
        let output = shell.current_dir(self.folder.path()).env("PATH", path).output().expect("a shell");
        let mut text = both(&output);
        for (written, used) in self.ports {
            text = text.replace(&format!(":{used}"), &format!(":{written}"));
        }
        text
    }

    fn with_own_ports(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (written, used) in self.ports {
            for host in ["127.0.0.1", "localhost", "0.0.0.0"] {
                text = text.replace(&format!("{host}:{written}"), &format!("{host}:{used}"));
            }
        }
        text
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for process in &mut self.running {
            // One that has ended by itself needs no end.
            drop(process.kill());
            drop(process.wait());
        }
        if std::thread::panicking() {
            eprintln!("--- the gateway's log\n{}---", self.log());
        }
    }
}

pub fn both(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

pub fn hookonce() -> Command {
    without_own_variables(Command::new(env!("CARGO_BIN_EXE_hookonce")))
}

/// A command that does not see the variables that the shipped configurations read.
fn without_own_variables(mut command: Command) -> Command {
    for variable in ["STRIPE_WEBHOOK_SECRET", "ORDERS_WEBHOOK_SECRET", "REDIS_URL"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Below the range that the system gives to outgoing connections, and each only once.
fn free_port() -> u16 {
    static OFFSET: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % 97) as u16 * 40;
    loop {
        let port = 14_000 + (start + OFFSET.fetch_add(1, Ordering::Relaxed)) % 5_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
