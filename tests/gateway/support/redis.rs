//! A Redis of the test's own: a real server with append-only persistence, which can be killed, frozen and restarted.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{eventually, free_port, local};

/// One reply of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Text(String),
    Number(i64),
    Nothing,
    List(Vec<Reply>),
    Error(String),
}

pub struct Redis {
    pub port: u16,
    folder: TempDir,
    server: Mutex<Child>,
}

impl Redis {
    /// A server that keeps what it acknowledged when its process dies.
    ///
    /// Only processes die here, never the machine, so what was handed to the system is safe; waiting for the disk would
    /// only make the tests depend on its speed. (With `everysec` Redis may put even the handing over off.)
    pub fn start() -> Self {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "no"])
    }

    /// A server that forgets with its process.
    pub fn start_forgetful() -> Self {
        Self::start_with(&["--appendonly", "no"])
    }

    /// A server with these settings: a name as on the command line, and its value.
    pub fn start_with(persistence: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let configuration = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsave \"\"\nlogfile redis.log\n{}\n",
            folder.path().display(),
            persistence.chunks(2).map(|pair| format!("{} {}", &pair[0][2..], pair[1])).collect::<Vec<_>>().join("\n"),
        );
        std::fs::write(folder.path().join("redis.conf"), configuration).expect("a configuration");
        let server = spawn(&folder);
        let redis = Self { port, folder, server: Mutex::new(server) };
        redis.wait_until_it_answers();
        redis
    }

    pub fn address(&self) -> SocketAddr {
        local(self.port)
    }

    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address())
    }

    /// Ends it with SIGKILL. Does nothing when it has ended.
    pub fn kill(&self) {
        let mut server = self.server.lock().expect("the server");
        server.kill().expect("a signal");
        server.wait().expect("an exit");
    }

    /// Starts it again after [`Redis::kill`], with the same files on the same port.
    pub fn start_again(&self) {
        self.begin_to_start_again();
        self.wait_until_it_answers();
    }

    /// The same, and does not wait until it has read its files.
    pub fn begin_to_start_again(&self) {
        *self.server.lock().expect("the server") = spawn(&self.folder);
    }

    /// Takes away what it has on the disk, after [`Redis::kill`].
    pub fn forget_everything(&self) {
        std::fs::remove_dir_all(self.folder.path().join("appendonlydir")).expect("append-only persistence");
    }

    /// Stops it where it is: connections stay open, and nothing is answered.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let server = self.server.lock().expect("the server");
        kill_process(Pid::from_child(&server), signal).expect("a signal");
    }

    /// The part of the append-only file that is written to.
    pub fn append_only_file(&self) -> PathBuf {
        let folder = self.folder.path().join("appendonlydir");
        let files = std::fs::read_dir(folder).expect("append-only persistence");
        let mut paths = files.map(|file| file.expect("a file").path());
        paths.find(|path| path.to_string_lossy().ends_with(".incr.aof")).expect("a part that is written to")
    }

    pub fn get(&self, key: &str) -> Option<String> {
        match self.command(&["GET", key]) {
            Reply::Text(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it answers, and only that it is reading its files.
    pub fn is_loading(&self) -> bool {
        matches!(self.try_command(&["PING"]), Ok(Reply::Error(error)) if error.starts_with("LOADING"))
    }

    /// What is left of the key's time.
    pub fn time_to_live(&self, key: &str) -> Duration {
        match self.command(&["PTTL", key]) {
            Reply::Number(milliseconds) if milliseconds > 0 => Duration::from_millis(milliseconds.unsigned_abs()),
            other => panic!("`{key}` has no time to live: {other:?}"),
        }
    }

    /// Every key, sorted.
    pub fn keys(&self) -> Vec<String> {
        let Reply::List(keys) = self.command(&["KEYS", "*"]) else { panic!("no list of keys") };
        let mut keys: Vec<_> = keys
            .into_iter()
            .map(|key| match key {
                Reply::Text(key) => key,
                other => panic!("no key: {other:?}"),
            })
            .collect();
        keys.sort();
        keys
    }

    /// One command on a connection of its own.
    pub fn command(&self, words: &[&str]) -> Reply {
        self.try_command(words).expect("Redis answers")
    }

    fn try_command(&self, words: &[&str]) -> io::Result<Reply> {
        let mut stream = TcpStream::connect(local(self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        stream.write_all(command.as_bytes())?;
        read_reply(&mut BufReader::new(stream))
    }

    fn wait_until_it_answers(&self) {
        eventually("an answer of Redis", || {
            matches!(self.try_command(&["PING"]), Ok(Reply::Text(pong)) if pong == "PONG").then_some(())
        });
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(folder: &TempDir) -> Child {
    Command::new("redis-server")
        .arg(folder.path().join("redis.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server starts; `make setup` installs it")
}

fn read_reply(reader: &mut BufReader<TcpStream>) -> io::Result<Reply> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::UnexpectedEof)?;
    let number = || rest.parse::<i64>().map_err(io::Error::other);
    Ok(match kind {
        "+" => Reply::Text(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Number(number()?),
        "$" => match usize::try_from(number()?) {
            Err(_) => Reply::Nothing,
            Ok(length) => {
                let mut text = vec![0; length + 2];
                reader.read_exact(&mut text)?;
                Reply::Text(String::from_utf8_lossy(&text[..length]).into_owned())
            }
        },
        "*" => Reply::List((0..number()?).map(|_| read_reply(reader)).collect::<io::Result<_>>()?),
        _ => return Err(io::Error::other(format!("not a reply: {line}"))),
    })
}
