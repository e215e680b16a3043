//! The table of keys: one row per key, whose primary key is the arbiter of claims.
//!
//! Times in it are milliseconds since 1970. A row whose time has come is absent, whether or not it was removed yet:
//! every statement here says so.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};

use crate::claim::{self, Forgotten, Found, Record, Standing, Terms, Token, Value};
use crate::store::reading::{Held, forgotten, found, milliseconds, standing};
use crate::store::{OpenError, StoreError};

/// `user_version` of the file: which layout it has.
const LAYOUT: i64 = 1;

/// How long a statement waits for another process that has the file open (`keys` beside `run`).
const BUSY: Duration = Duration::from_secs(1);

const CREATE: &str = "
    BEGIN IMMEDIATE;
    CREATE TABLE keys (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, ends_at INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX keys_by_end ON keys (ends_at);
    PRAGMA user_version = 1;
    COMMIT;
";

/// Whoever held these claims is gone. What may have been sent is not sent again.
const END_CLAIMS: &str = "
    BEGIN IMMEDIATE;
    DELETE FROM keys WHERE value GLOB '1c:*';
    UPDATE keys SET value = '1u:0' WHERE value GLOB '1s:*';
    COMMIT;
";

pub(super) struct Table {
    pub(super) connection: Connection,
    clock: Clock,
    /// Another process looks after the file, by its own clock.
    beside: bool,
}

impl Table {
    /// Opens the file, makes it if it is not there, and ends the claims of the process before.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let unusable = |error| unusable(path, &error);
        let connection = Connection::open(path).map_err(unusable)?;
        match layout(&connection, path)? {
            Layout::Ours => {}
            Layout::Empty => connection.execute_batch(CREATE).map_err(unusable)?,
            Layout::Foreign => return Err(foreign(path)),
        }
        let journal = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        if journal.map_err(unusable)? != "wal" {
            return Err(OpenError {
                message: format!("`{}` lies where SQLite cannot keep a write-ahead log", path.display()),
                hint: Some("put `store.embedded.path` on a local disk".to_owned()),
            });
        }
        connection.pragma_update(None, "synchronous", "FULL").map_err(unusable)?;
        connection.execute_batch(END_CLAIMS).map_err(unusable)?;
        Ok(Self { connection, clock: Clock::new(), beside: false })
    }

    /// Opens a file that is there, and leaves everything in it as it is.
    pub(super) fn open_beside(path: &Path) -> Result<Self, OpenError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| match path.exists() {
            true => unusable(path, &error),
            false => OpenError {
                message: format!("there is no file `{}`", path.display()),
                hint: Some(
                    "a relative `store.embedded.path` is relative to the working directory: run this in the gateway's"
                        .to_owned(),
                ),
            },
        })?;
        match layout(&connection, path)? {
            Layout::Ours => {}
            Layout::Empty | Layout::Foreign => return Err(foreign(path)),
        }
        connection.pragma_update(None, "synchronous", "FULL").map_err(|error| unusable(path, &error))?;
        Ok(Self { connection, clock: Clock::new(), beside: true })
    }

    pub(super) fn claim(&self, key: &str, token: &Token, terms: Terms) -> Result<Found, StoreError> {
        let now = self.clock.now();
        let claimed = Value::Claimed(token.as_str()).text();
        let taken = self.execute(
            "INSERT INTO keys (key, value, ends_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, ends_at = excluded.ends_at
             WHERE keys.ends_at <= ?4",
            params![key, claimed, now.saturating_add(milliseconds(terms.lease)), now],
        )?;
        if taken {
            return Ok(Found::Claimed);
        }
        // The statement before has seen a row that holds, at the same moment and in the same transaction.
        let held = self.read(key, now)?.ok_or_else(vanished)?;
        Ok(found(held.value()?, held.remaining, token, terms))
    }

    pub(super) fn settle_done(&self, key: &str, record: Record, window: Duration) -> Result<(), StoreError> {
        let done = Value::Done(record).text();
        self.execute(
            "INSERT INTO keys (key, value, ends_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, ends_at = excluded.ends_at",
            params![key, done, self.clock.now().saturating_add(milliseconds(window))],
        )?;
        Ok(())
    }

    /// Puts `value` in the place of what `token` has written there, and answers whether there was such.
    pub(super) fn replace(
        &self,
        key: &str,
        token: &Token,
        value: &str,
        duration: Duration,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let (claimed, sending) = written_by(token);
        self.execute(
            "UPDATE keys SET value = ?4, ends_at = ?5 WHERE key = ?1 AND value IN (?2, ?3) AND ends_at > ?6",
            params![key, claimed, sending, value, now.saturating_add(milliseconds(duration)), now],
        )
    }

    pub(super) fn release(&self, key: &str, token: &Token) -> Result<bool, StoreError> {
        let (claimed, sending) = written_by(token);
        self.execute(
            "DELETE FROM keys WHERE key = ?1 AND value IN (?2, ?3) AND ends_at > ?4",
            params![key, claimed, sending, self.clock.now()],
        )
    }

    pub(super) fn renew(&self, key: &str, token: &Token, terms: Terms) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let (claimed, sending) = written_by(token);
        let (lease, window) = (milliseconds(terms.lease), milliseconds(terms.window));
        self.execute(
            "UPDATE keys SET ends_at = CASE value WHEN ?2 THEN ?4 + ?5 ELSE ?4 + ?6 END
             WHERE key = ?1 AND ends_at > ?4 AND (value = ?2 OR (value = ?3 AND ends_at - ?4 + ?5 >= ?6))",
            params![key, claimed, sending, now, lease, window],
        )
    }

    pub(super) fn look(&self, key: &str, terms: Terms) -> Result<Option<Standing>, StoreError> {
        let held = self.read(key, self.clock.now())?;
        held.map(|held| Ok(standing(held.value()?, held.remaining, terms))).transpose()
    }

    /// Runs inside the writer's transaction: nobody changes the row between the look and the removal.
    pub(super) fn forget(&self, key: &str, terms: Terms, force: bool) -> Result<Forgotten, StoreError> {
        let Some(held) = self.read(key, self.clock.now())? else { return Ok(Forgotten::Absent) };
        let decided = forgotten(held.value()?, held.remaining, terms, force);
        if matches!(decided, Forgotten::Freed(_)) {
            self.execute("DELETE FROM keys WHERE key = ?1", params![key])?;
        }
        Ok(decided)
    }

    /// Removes up to `most` rows whose time has come, and answers how many it removed.
    pub(super) fn purge(&self, most: usize) -> rusqlite::Result<usize> {
        if self.beside {
            return Ok(0);
        }
        self.connection
            .prepare_cached(
                "DELETE FROM keys WHERE key IN
                 (SELECT key FROM keys WHERE ends_at <= ?1 ORDER BY ends_at LIMIT ?2)",
            )?
            .execute(params![self.clock.now(), i64::try_from(most).unwrap_or(i64::MAX)])
    }

    fn read(&self, key: &str, now: i64) -> Result<Option<Held>, StoreError> {
        let row: Option<(String, i64)> = self
            .connection
            .prepare_cached("SELECT value, ends_at FROM keys WHERE key = ?1 AND ends_at > ?2")
            .and_then(|mut select| select.query_row(params![key, now], |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .map_err(|error| refused(&error))?;
        let Some((text, ends_at)) = row else { return Ok(None) };
        let remaining = Duration::from_millis(u64::try_from(ends_at.saturating_sub(now)).unwrap_or(0));
        Ok(Some(Held { text, remaining }))
    }

    /// Carries out a statement on one key and answers whether it changed it.
    fn execute(&self, statement: &str, values: impl rusqlite::Params) -> Result<bool, StoreError> {
        self.connection
            .prepare_cached(statement)
            .and_then(|mut prepared| prepared.execute(values))
            .map(|changed| changed == 1)
            .map_err(|error| refused(&error))
    }
}

/// Whose a file is.
enum Layout {
    Ours,
    Empty,
    Foreign,
}

fn layout(connection: &Connection, path: &Path) -> Result<Layout, OpenError> {
    let unusable = |error| unusable(path, &error);
    connection.busy_timeout(BUSY).map_err(unusable)?;
    let number = |query| connection.query_row(query, [], |row| row.get::<_, i64>(0)).map_err(unusable);
    Ok(match (number("PRAGMA user_version")?, number("SELECT count(*) FROM sqlite_schema")?) {
        (LAYOUT, _) => Layout::Ours,
        (0, 0) => Layout::Empty,
        _ => Layout::Foreign,
    })
}

fn foreign(path: &Path) -> OpenError {
    OpenError {
        message: format!("`{}` is a database of another program or version", path.display()),
        hint: Some("name another file in `store.embedded.path`".to_owned()),
    }
}

/// The two values that the owner of `token` may have written.
fn written_by(token: &Token) -> (String, String) {
    (Value::Claimed(token.as_str()).text(), Value::Sending(token.as_str()).text())
}

pub(super) fn refused(error: &rusqlite::Error) -> StoreError {
    StoreError::Refused(format!("SQLite: {error}"))
}

fn vanished() -> StoreError {
    StoreError::Refused("SQLite: a row is neither there nor absent".to_owned())
}

fn unusable(path: &Path, error: &rusqlite::Error) -> OpenError {
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => "the folder must exist and the process must be allowed to write in it",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "the process must be allowed to write the file and the folder it lies in"
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            "this is no intact database: name another file in `store.embedded.path`, or put a backup in its place"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has the file open: close it there"
        }
        Some(ErrorCode::DiskFull) => "free space on its disk",
        _ => "check the disk and the file",
    };
    OpenError { message: format!("cannot use `{}`: {error}", path.display()), hint: Some(hint.to_owned()) }
}

/// The time of day when the file was opened, counted on by a clock that nobody sets: a correction of the system's time
/// neither ends nor lengthens what holds.
struct Clock {
    opened: Instant,
    opened_at: i64,
}

impl Clock {
    fn new() -> Self {
        let opened_at = i64::try_from(claim::milliseconds(SystemTime::now())).unwrap_or(i64::MAX);
        Self { opened: Instant::now(), opened_at }
    }

    fn now(&self) -> i64 {
        self.opened_at.saturating_add(i64::try_from(self.opened.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}
