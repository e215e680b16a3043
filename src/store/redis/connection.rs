//! The one shared connection to Redis: opened when first needed, replaced when it can no longer be trusted.
//!
//! The library's own retries and reconnects are not used: its connection manager goes on with a connection that timed
//! out or that leads to a demoted server. Here a connection is given up when it breaks, when an answer did not come in
//! time, or when the server says that another one should be asked. The next operation opens a new one; while an
//! attempt has just failed, operations fail at once instead of knocking again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use ::redis::io::tcp::TcpSettings;
use ::redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, Pipeline, RedisError, Value, cmd};
use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;

use super::durability::{Durability, Fault, Report, Verdict};
use super::scripts;
use super::witness::Witness;
use crate::config;
use crate::metrics::Metrics;
use crate::store::{OpenError, StoreError};

/// How long after a failed attempt, or after a connection was opened that is no good, no new one is opened.
const BACK_OFF: Duration = Duration::from_millis(100);

pub(super) struct Connector {
    client: Client,
    timeout: Duration,
    pub(super) durability: Durability,
    pub(super) witness: Witness,
    current: ArcSwapOption<Link>,
    /// Held while connecting, so that one attempt runs at a time; remembers how the last one failed.
    connecting: Mutex<Option<(Instant, StoreError)>>,
}

/// A connection with a face: two of them can be told apart.
pub(super) struct Link {
    connection: MultiplexedConnection,
    opened: Instant,
}

/// Why there is no connection.
enum Refusal {
    /// It may be there later.
    Unavailable(StoreError),
    /// This server, as it is set up, is none to work with.
    Unfit(Fault),
}

impl Connector {
    pub(super) fn new(config: &config::Redis, metrics: Arc<Metrics>) -> Result<Self, OpenError> {
        // The error and the URL are kept out of the message: the URL may hold a password.
        let unusable = |_: RedisError| OpenError {
            message: "`store.redis.url` is not a URL of a Redis".to_owned(),
            hint: Some("write it as `redis://host:6379/0`, or `rediss://` for TLS".to_owned()),
        };
        let info = config.url.reveal().into_connection_info().map_err(unusable)?;
        let info = match &config.password {
            Some(password) => {
                let settings = info.redis_settings().clone().set_password(password.reveal());
                info.set_redis_settings(settings)
            }
            None => info,
        };
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        Ok(Self {
            client: Client::open(info).map_err(unusable)?,
            timeout: config.timeout,
            durability: Durability::new(config.persistence, Arc::clone(&metrics)),
            witness: Witness::new(metrics),
            current: ArcSwapOption::empty(),
            connecting: Mutex::new(None),
        })
    }

    /// Looks at the server over a connection of its own, which ends with this call: the runtime of the start does not
    /// outlive it, and neither would the connection's driver.
    pub(super) async fn check_at_start(&self) -> Result<(), OpenError> {
        let faults = match self.connect_in_time().await {
            Ok((_, report)) => {
                self.durability.learn(&report);
                self.durability.forbids_start(&report).to_vec()
            }
            Err(Refusal::Unfit(fault)) => vec![fault],
            Err(Refusal::Unavailable(error)) => {
                tracing::warn!(%error, "Redis is not there yet: deliveries are treated as `store_down` says until it is");
                return Ok(());
            }
        };
        if faults.is_empty() {
            return Ok(());
        }
        let join = |texts: Vec<String>| texts.join("; ");
        Err(OpenError {
            message: join(faults.iter().map(ToString::to_string).collect()),
            hint: Some(join(faults.iter().map(|fault| fault.hint().to_owned()).collect())),
        })
    }

    /// The connection, opened if there is none.
    pub(super) async fn link(self: &Arc<Self>) -> Result<Arc<Link>, StoreError> {
        if let Some(link) = self.current.load_full() {
            return Ok(link);
        }
        // A task of its own: an attempt gets its whole time and leaves its mark, even if who asked has given up.
        let connector = Arc::clone(self);
        match tokio::spawn(async move { connector.replace().await }).await {
            Ok(outcome) => outcome,
            Err(_) => Err(StoreError::Unreachable("the attempt to connect was cut off".to_owned())),
        }
    }

    /// The connection, if the server would not forget what is claimed over it.
    pub(super) async fn durable_link(self: &Arc<Self>) -> Result<Arc<Link>, StoreError> {
        let link = self.link().await?;
        match self.durability.verdict() {
            Verdict::Claim => return Ok(link),
            Verdict::Refuse(fault) => return Err(StoreError::NotDurable(fault)),
            Verdict::AskAgain => {}
        }
        self.inspect(&link).await?;
        match self.durability.fault() {
            None => Ok(link),
            Some(fault) => Err(StoreError::NotDurable(fault)),
        }
    }

    /// Asks the server anew whether it is durable.
    pub(super) async fn inspect(&self, link: &Arc<Link>) -> Result<Option<bool>, StoreError> {
        let replies = self.trip(link, &pipeline([cmd("INFO")])).await?;
        Ok(self.durability.learn(&Report::read(replies.first().and_then(text))))
    }

    /// Sends all commands in one write and answers with one reply for each, some of which may be errors. If the
    /// server has lost the scripts, it gets them again together with the commands that missed them.
    pub(super) async fn run(&self, link: &Arc<Link>, commands: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let mut replies = self.trip(link, commands).await?;
        let missed: Vec<usize> =
            (0..replies.len()).filter(|index| code(&replies[*index]) == Some("NOSCRIPT")).collect();
        if !missed.is_empty() {
            let loads: Vec<Cmd> = scripts::load_all().collect();
            let skip = loads.len();
            let again = missed.iter().filter_map(|index| commands.cmd_iter().nth(*index).cloned());
            let second = self.trip(link, &pipeline(loads.into_iter().chain(again))).await?;
            for (index, reply) in missed.into_iter().zip(second.into_iter().skip(skip)) {
                replies[index] = reply;
            }
        }
        Ok(replies)
    }

    async fn trip(&self, link: &Arc<Link>, commands: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let mut unanswered = Unanswered { connector: self, link, since: Instant::now(), answered: false };
        let mut connection = link.connection.clone();
        let replies = connection.req_packed_commands(commands, 0, commands.len()).await;
        unanswered.answered = true;
        drop(unanswered);
        match replies {
            Ok(replies) if replies.len() == commands.len() => {
                let elsewhere = |reply| matches!(code(reply), Some("READONLY" | "LOADING" | "MASTERDOWN" | "NOAUTH"));
                // A server that stays that way must not be connected to anew with every operation.
                if link.opened.elapsed() >= BACK_OFF && replies.iter().any(elsewhere) {
                    self.give_up(link);
                }
                Ok(replies)
            }
            Ok(replies) => {
                self.give_up(link);
                let counts = format!("{} replies to {} commands", replies.len(), commands.len());
                Err(StoreError::Unreachable(counts))
            }
            Err(error) => {
                self.give_up(link);
                Err(unavailable(&error))
            }
        }
    }

    fn give_up(&self, link: &Arc<Link>) {
        self.current.compare_and_swap(link, None);
    }

    async fn replace(&self) -> Result<Arc<Link>, StoreError> {
        let mut failed = self.connecting.lock().await;
        if let Some(link) = self.current.load_full() {
            return Ok(link);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < BACK_OFF
        {
            return Err(error.clone());
        }
        let error = match self.connect_in_time().await {
            Ok((connection, report)) => {
                self.durability.learn(&report);
                let link = Arc::new(Link { connection, opened: Instant::now() });
                self.current.store(Some(Arc::clone(&link)));
                *failed = None;
                return Ok(link);
            }
            Err(Refusal::Unavailable(error)) => error,
            Err(Refusal::Unfit(fault)) => StoreError::Refused(fault.to_string()),
        };
        *failed = Some((Instant::now(), error.clone()));
        Err(error)
    }

    async fn connect_in_time(&self) -> Result<(MultiplexedConnection, Report), Refusal> {
        let connecting = tokio::time::timeout(self.timeout, self.connect());
        connecting.await.unwrap_or(Err(Refusal::Unavailable(StoreError::TimedOut)))
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, Report), Refusal> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let broken = |error: RedisError| match error.kind() {
            ErrorKind::AuthenticationFailed => Refusal::Unfit(Fault::Denied("the password is wrong".to_owned())),
            _ => Refusal::Unavailable(unavailable(&error)),
        };
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await.map_err(broken)?;
        let commands = pipeline([cmd("INFO")].into_iter().chain(scripts::load_all()));
        let replies = connection.req_packed_commands(&commands, 0, commands.len()).await.map_err(broken)?;
        let report = Report::read(replies.first().and_then(text));
        if let Some(fault) = report.too_old {
            return Err(Refusal::Unfit(fault));
        }
        if let Some(question) = self.witness.question() {
            let asked = pipeline([question]);
            let answers = connection.req_packed_commands(&asked, 0, asked.len()).await.map_err(broken)?;
            answers.iter().for_each(|answer| self.witness.hear(answer));
        }
        // INFO may be forbidden. Without the scripts nothing works.
        match replies.iter().skip(1).find_map(refusal) {
            None => Ok((connection, report)),
            Some(error) if replies.iter().skip(1).any(|reply| matches!(code(reply), Some("NOAUTH" | "NOPERM"))) => {
                Err(Refusal::Unfit(Fault::Denied(error)))
            }
            // A server that is still loading its data says already that it would evict it.
            Some(_) if !self.durability.forbids_start(&report).is_empty() => Ok((connection, report)),
            Some(error) => Err(Refusal::Unavailable(StoreError::Refused(error))),
        }
    }
}

/// Notices that whoever waited for an answer has stopped waiting. If that was a time-out, the connection is suspect.
struct Unanswered<'a> {
    connector: &'a Connector,
    link: &'a Arc<Link>,
    since: Instant,
    answered: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        // A caller may go for reasons of its own, soon; a time-out comes after the whole time or most of it.
        if !self.answered && self.since.elapsed() >= self.connector.timeout / 2 {
            self.connector.give_up(self.link);
        }
    }
}

pub(super) fn pipeline(commands: impl IntoIterator<Item = Cmd>) -> Pipeline {
    let commands = commands.into_iter();
    let mut pipeline = Pipeline::with_capacity(commands.size_hint().0);
    for command in commands {
        pipeline.add_command(command);
    }
    pipeline
}

fn unavailable(error: &RedisError) -> StoreError {
    match (error.is_timeout(), error.kind()) {
        (true, _) => StoreError::TimedOut,
        (_, ErrorKind::Server(_) | ErrorKind::Extension) => StoreError::Refused(error.to_string()),
        _ => StoreError::Unreachable(error.to_string()),
    }
}

/// The error's code, if the reply is one.
fn code(reply: &Value) -> Option<&str> {
    match reply {
        Value::ServerError(error) => Some(error.code()),
        _ => None,
    }
}

/// The error as Redis sent it, if the reply is one.
pub(super) fn refusal(reply: &Value) -> Option<String> {
    match reply {
        Value::ServerError(error) => Some(match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        }),
        _ => None,
    }
}

/// The reply's text, if it has one.
fn text(reply: &Value) -> Option<&str> {
    match reply {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}
