//! The connections to Redis: one for each thread, shared by all that it does; opened when first needed, replaced when it can
//! no longer be trusted.
//!
//! A connection lives in the runtime in which it was opened. Shared by all threads it would wake those of the others for
//! every answer, which costs more than the command.
//!
//! The library's own retries and reconnects are not used: its connection manager goes on with a connection that timed
//! out or that leads to a demoted server. Here a connection is given up when it breaks, when an answer did not come in
//! time, or when the server says that another one should be asked. The next operation opens a new one; while an
//! attempt has just failed, operations fail at once instead of knocking again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use ::redis::io::tcp::TcpSettings;
use ::redis::{Client, Cmd, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, Value, cmd};
use arc_swap::ArcSwapOption;
use thread_local::ThreadLocal;
use tokio::sync::Mutex;

use super::commands::{Commands, Keys, Replies};
use super::durability::{Durability, Fault, Report, Verdict};
use super::replies::{code, refusal, text};
use super::scripts;
use super::wire::{self, Wire};
use super::witness::Witness;
use crate::config;
use crate::metrics::Metrics;
use crate::store::{OpenError, StoreError};

/// How long after a failed attempt, or after a connection was opened that is no good, no new one is opened.
const BACK_OFF: Duration = Duration::from_millis(100);

pub(super) struct Connector {
    client: Client,
    timeout: Duration,
    pub(super) keys: Keys,
    pub(super) durability: Durability,
    pub(super) witness: Witness,
    places: ThreadLocal<Arc<Place>>,
    /// How the last attempt failed, on whatever thread; the first that succeeds tells them all.
    failed: std::sync::Mutex<Option<(Instant, StoreError)>>,
    /// Raised when a connection is given up: those of the other threads lead to the same server and are replaced too.
    generation: AtomicU64,
}

/// Where a thread's connection is.
#[derive(Default)]
struct Place {
    current: ArcSwapOption<Link>,
    /// Held while connecting, so that one attempt runs at a time.
    connecting: Mutex<()>,
}

/// A connection with a face: two of them can be told apart.
pub(super) struct Link {
    wire: Wire,
    opened: Instant,
    generation: u64,
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
            keys: Keys::new(&config.prefix),
            durability: Durability::new(config.persistence, Arc::clone(&metrics)),
            witness: Witness::new(metrics),
            places: ThreadLocal::new(),
            failed: std::sync::Mutex::default(),
            generation: AtomicU64::new(0),
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

    /// This thread's connection, opened if there is none.
    pub(super) async fn link(self: &Arc<Self>) -> Result<Arc<Link>, StoreError> {
        let place = self.places.get_or_default();
        if let Some(link) = self.trusted(place) {
            return Ok(link);
        }
        // A task of its own: an attempt gets its whole time and leaves its mark, even if who asked has given up.
        let (connector, place) = (Arc::clone(self), Arc::clone(place));
        match tokio::spawn(async move { connector.replace(&place).await }).await {
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
        Box::pin(self.inspect(&link)).await?;
        match self.durability.fault() {
            None => Ok(link),
            Some(fault) => Err(StoreError::NotDurable(fault)),
        }
    }

    /// Asks the server anew whether it is durable.
    pub(super) async fn inspect(&self, link: &Arc<Link>) -> Result<Option<bool>, StoreError> {
        let replies = self.trip(link, &Commands::One(cmd("INFO"))).await?;
        let report = Report::read(replies.as_slice().first().and_then(text));
        // A server that was demoted is no longer the one that claims go to, and a thread that only asks how it is would
        // not be told so by a refused write.
        if report.is_replica && link.opened.elapsed() >= BACK_OFF {
            self.give_up(link);
        }
        Ok(self.durability.learn(&report))
    }

    /// Sends all commands in one write and answers with one reply for each, some of which may be errors. If the
    /// server has lost the scripts, it gets them again together with the commands that missed them.
    pub(super) async fn run(&self, link: &Arc<Link>, commands: &Commands) -> Result<Replies, StoreError> {
        let replies = self.trip(link, commands).await?;
        if replies.as_slice().iter().any(missed_its_script) {
            return Box::pin(self.run_with_scripts(link, commands, replies)).await;
        }
        Ok(replies)
    }

    async fn run_with_scripts(
        &self,
        link: &Arc<Link>,
        commands: &Commands,
        mut replies: Replies,
    ) -> Result<Replies, StoreError> {
        let missed = |(index, reply): (usize, &Value)| missed_its_script(reply).then_some(index);
        let missed: Vec<usize> = replies.as_slice().iter().enumerate().filter_map(missed).collect();
        let loads: Vec<Cmd> = scripts::load_all().collect();
        let skip = loads.len();
        let again = missed.iter().filter_map(|index| commands.get(*index).cloned());
        let second = self.trip(link, &loads.into_iter().chain(again).collect()).await?;
        for (index, reply) in missed.into_iter().zip(&second.as_slice()[skip..]) {
            replies.as_mut_slice()[index] = reply.clone();
        }
        Ok(replies)
    }

    async fn trip(&self, link: &Arc<Link>, commands: &Commands) -> Result<Replies, StoreError> {
        let mut unanswered = Unanswered { connector: self, link, since: Instant::now(), answered: false };
        let replies = send(link.wire.connection.clone(), commands).await;
        unanswered.answered = true;
        drop(unanswered);
        match replies {
            Ok(replies) if replies.as_slice().len() == commands.len() => {
                let elsewhere = |reply| matches!(code(reply), Some("READONLY" | "LOADING" | "MASTERDOWN" | "NOAUTH"));
                // A server that stays that way must not be connected to anew with every operation.
                if replies.as_slice().iter().any(elsewhere) && link.opened.elapsed() >= BACK_OFF {
                    self.give_up(link);
                }
                Ok(replies)
            }
            Ok(replies) => {
                self.give_up(link);
                let counts = format!("{} replies to {} commands", replies.as_slice().len(), commands.len());
                Err(StoreError::Unreachable(counts))
            }
            Err(error) => {
                self.give_up(link);
                Err(unavailable(&error))
            }
        }
    }

    /// The place's connection, unless it, or another one of its time, was given up.
    fn trusted(&self, place: &Place) -> Option<Arc<Link>> {
        place.current.load_full().filter(|link| link.generation == self.generation.load(Ordering::Acquire))
    }

    /// The next operation of each thread opens another one.
    fn give_up(&self, link: &Link) {
        let next = link.generation + 1;
        // Whoever gives up another one of the same time changes nothing.
        let _ = self.generation.compare_exchange(link.generation, next, Ordering::AcqRel, Ordering::Relaxed);
    }

    async fn replace(&self, place: &Arc<Place>) -> Result<Arc<Link>, StoreError> {
        let _connecting = place.connecting.lock().await;
        if let Some(link) = self.trusted(place) {
            return Ok(link);
        }
        let generation = self.generation.load(Ordering::Acquire);
        if let Some((at, error)) = &*self.failed()
            && at.elapsed() < BACK_OFF
        {
            return Err(error.clone());
        }
        let error = match self.connect_in_time().await {
            Ok((wire, report)) => {
                self.durability.learn(&report);
                let link = Arc::new(Link { wire, opened: Instant::now(), generation });
                place.current.store(Some(Arc::clone(&link)));
                *self.failed() = None;
                return Ok(link);
            }
            Err(Refusal::Unavailable(error)) => error,
            Err(Refusal::Unfit(fault)) => StoreError::Refused(fault.to_string()),
        };
        *self.failed() = Some((Instant::now(), error.clone()));
        Err(error)
    }

    fn failed(&self) -> MutexGuard<'_, Option<(Instant, StoreError)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect_in_time(&self) -> Result<(Wire, Report), Refusal> {
        let connecting = tokio::time::timeout(self.timeout, self.connect());
        connecting.await.unwrap_or(Err(Refusal::Unavailable(StoreError::TimedOut)))
    }

    async fn connect(&self) -> Result<(Wire, Report), Refusal> {
        let broken = |error: RedisError| match error.kind() {
            ErrorKind::AuthenticationFailed => Refusal::Unfit(Fault::Denied("the password is wrong".to_owned())),
            _ => Refusal::Unavailable(unavailable(&error)),
        };
        let wire = wire::open(&self.client).await.map_err(broken)?;
        let commands = [cmd("INFO")].into_iter().chain(scripts::load_all()).collect();
        let replies = send(wire.connection.clone(), &commands).await.map_err(broken)?;
        let replies = replies.as_slice();
        let report = Report::read(replies.first().and_then(text));
        if let Some(fault) = report.too_old {
            return Err(Refusal::Unfit(fault));
        }
        if let Some(question) = self.witness.question(&self.keys) {
            let answers = send(wire.connection.clone(), &Commands::One(question)).await.map_err(broken)?;
            answers.as_slice().iter().for_each(|answer| self.witness.hear(answer));
        }
        // INFO may be forbidden. Without the scripts nothing works.
        match replies.iter().skip(1).find_map(refusal) {
            None => Ok((wire, report)),
            Some(error) if replies.iter().skip(1).any(|reply| matches!(code(reply), Some("NOAUTH" | "NOPERM"))) => {
                Err(Refusal::Unfit(Fault::Denied(error)))
            }
            // A server that is still loading its data says already that it would evict it.
            Some(_) if !self.durability.forbids_start(&report).is_empty() => Ok((wire, report)),
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

/// One write, and one reply for each command, errors among them.
async fn send(mut connection: MultiplexedConnection, commands: &Commands) -> RedisResult<Replies> {
    Ok(match commands {
        Commands::One(command) => Replies::One(connection.send_packed_command(command).await?),
        Commands::Many(commands) => Replies::Many(connection.send_packed_commands(commands, 0, commands.len()).await?),
    })
}

fn missed_its_script(reply: &Value) -> bool {
    code(reply) == Some("NOSCRIPT")
}

fn unavailable(error: &RedisError) -> StoreError {
    match (error.is_timeout(), error.kind()) {
        (true, _) => StoreError::TimedOut,
        (_, ErrorKind::Server(_) | ErrorKind::Extension) => StoreError::Refused(error.to_string()),
        _ => StoreError::Unreachable(error.to_string()),
    }
}
