//! The Lua scripts: every change that depends on what a key holds now, as one atomic step in Redis.
//!
//! Each works on exactly one key, so that keys may live on different nodes one day. All that write carry
//! `allow-oom`: a full Redis, which refuses new claims, must still take what frees or settles the old ones.

use std::sync::LazyLock;

use ::redis::{Cmd, cmd};

pub(super) struct Script {
    source: &'static str,
    /// What it is called by.
    pub(super) hash: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        Self { source, hash: ::redis::Script::new(source).get_hash().to_owned() }
    }
}

/// `value`, `milliseconds`
pub(super) static SETTLE_DONE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1",
    )
});

/// `claimed`, `sending`: what the key holds if it is ours; `value`, `milliseconds`. Answers 1 if it was.
pub(super) static REPLACE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] or held == ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
  return 1
end
return 0",
    )
});

/// `claimed`, `sending`: what the key holds if it is ours; or what a person has seen there, twice. Answers 1 if it was.
pub(super) static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] or held == ARGV[2] then
  return redis.call('DEL', KEYS[1])
end
return 0",
    )
});

/// `claimed`, `sending`: what the key holds if it is ours; `lease`, `window` in milliseconds. Answers 1 if it was.
/// A sender that others have been told is dead is not brought back.
pub(super) static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
if held == ARGV[2] and redis.call('PTTL', KEYS[1]) + ARGV[3] >= tonumber(ARGV[4]) then
  return redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 0",
    )
});

/// Answers the value and the milliseconds left, read at one moment; also on a replica and on a full Redis.
pub(super) static READ: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=no-writes
return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}",
    )
});

/// The commands that make Redis know all scripts.
pub(super) fn load_all() -> impl Iterator<Item = Cmd> {
    [&SETTLE_DONE, &REPLACE, &RELEASE, &RENEW, &READ].into_iter().map(|script| {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(script.source);
        load
    })
}
