//! The commands as Redis gets them, and what leaves together in one write.
//!
//! Every event costs at least two commands, so each is built with the room that it needs.

use std::io::Write;

use ::redis::{Cmd, Pipeline, RedisWrite, ToRedisArgs, Value as Reply, cmd};

use super::scripts::Script;
use crate::claim::{LONGEST_VALUE, Token, Value};
use crate::event::EventKey;

/// More than the name, the options and the numbers of a command take.
const ROOM: usize = 64;

/// How an installation's keys are named in Redis.
pub(super) struct Keys {
    /// With the separator that follows it.
    prefix: String,
}

/// A key as it is named in Redis.
struct Named<'a> {
    prefix: &'a str,
    key: &'a str,
}

impl ToRedisArgs for Named<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let mut argument = out.writer_for_next_arg();
        // A command is built in memory, which takes all.
        let _ = argument.write_all(self.prefix.as_bytes()).and_then(|()| argument.write_all(self.key.as_bytes()));
    }
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}:") }
    }

    fn named<'a>(&'a self, key: &'a EventKey) -> Named<'a> {
        Named { prefix: &self.prefix, key: key.as_str() }
    }

    fn begin(&self, arguments: usize, key: &EventKey, values: usize) -> Cmd {
        Cmd::with_capacity(arguments, ROOM + self.prefix.len() + key.as_str().len() + values)
    }

    /// Takes `key` if it is absent, else tells what it holds.
    pub(super) fn claim(&self, key: &EventKey, value: &str, lease: i64) -> Cmd {
        let mut set = self.begin(7, key, value.len());
        set.arg("SET").arg(self.named(key)).arg(value).arg("NX").arg("GET").arg("PX").arg(lease);
        set
    }

    pub(super) fn set(&self, key: &EventKey, value: &str, milliseconds: i64) -> Cmd {
        let mut set = self.begin(5, key, value.len());
        set.arg("SET").arg(self.named(key)).arg(value).arg("PX").arg(milliseconds);
        set
    }

    /// Asks what each of `keys` holds, in one command.
    pub(super) fn read_all(&self, keys: &[EventKey]) -> Cmd {
        let lengths: usize = keys.iter().map(|key| self.prefix.len() + key.as_str().len()).sum();
        let mut read = Cmd::with_capacity(1 + keys.len(), ROOM + lengths);
        read.arg("MGET");
        for key in keys {
            read.arg(self.named(key));
        }
        read
    }

    /// Asks whether `key` is there at all.
    pub(super) fn exists(&self, key: &EventKey) -> Cmd {
        let mut exists = cmd("EXISTS");
        exists.arg(self.named(key));
        exists
    }

    /// The call of a script on `key`, to which its arguments are added.
    pub(super) fn call(&self, script: &Script, key: &EventKey) -> Cmd {
        let mut call = self.begin(8, key, 3 * LONGEST_VALUE);
        call.arg("EVALSHA").arg(&script.hash).arg("1").arg(self.named(key));
        call
    }

    /// The call of a script that compares the key's value with the two that `token` may have written.
    pub(super) fn call_if_ours(&self, script: &Script, key: &EventKey, token: &Token) -> Cmd {
        let mut call = self.call(script, key);
        call.arg(Value::Claimed(token.as_str()).text()).arg(Value::Sending(token.as_str()).text());
        call
    }
}

/// Commands that leave in one write. A single one is cheaper on its way than a pipeline of one.
pub(super) enum Commands {
    One(Cmd),
    Many(Pipeline),
}

/// One reply for each command.
pub(super) enum Replies {
    One(Reply),
    Many(Vec<Reply>),
}

impl FromIterator<Cmd> for Commands {
    fn from_iter<I: IntoIterator<Item = Cmd>>(commands: I) -> Self {
        let mut commands = commands.into_iter();
        let (least, most) = commands.size_hint();
        if (least, most) == (1, Some(1))
            && let Some(only) = commands.next()
        {
            return Self::One(only);
        }
        let mut pipeline = Pipeline::with_capacity(least);
        for command in commands {
            pipeline.add_command(command);
        }
        Self::Many(pipeline)
    }
}

impl Commands {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(pipeline) => pipeline.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&Cmd> {
        match self {
            Self::One(command) => (index == 0).then_some(command),
            Self::Many(pipeline) => pipeline.cmd_iter().nth(index),
        }
    }
}

impl Replies {
    pub(super) fn as_slice(&self) -> &[Reply] {
        match self {
            Self::One(reply) => std::slice::from_ref(reply),
            Self::Many(replies) => replies,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Reply] {
        match self {
            Self::One(reply) => std::slice::from_mut(reply),
            Self::Many(replies) => replies,
        }
    }
}
