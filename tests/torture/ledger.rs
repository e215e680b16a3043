//! What Redis wrote down: its append-only file, read as the list of all changes of all keys.
//!
//! The file is the one witness that no fault can keep from the checker. It holds every write that took effect, in
//! order, with the moment at which the key ends in milliseconds. A claim ends a lease after it was written, so the
//! moment of each claim, promotion and renewal is known; other writes lie between two of those.

use std::time::Duration;

use super::history::{At, Change, Event, Recorder, Written};

/// The two times of the routes, by which the moment of a write is told from the moment its key ends.
#[derive(Clone, Copy)]
pub struct Terms {
    pub lease: Duration,
    pub window: Duration,
}

/// Reads the bytes of an append-only file. A last command that is cut short is left out, as Redis itself does.
pub fn read(file: &[u8], terms: Terms, recorder: &Recorder) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut rest = file;
    let mut reached = Duration::ZERO;
    while let Some((words, after)) = next_command(rest) {
        rest = after;
        let Some((event, what, written)) = change(&words, terms, recorder) else { continue };
        reached = written.map_or(reached, |written| reached.max(written));
        changes.push(Change { event, earliest: reached, latest: written.unwrap_or(At::MAX), what });
    }
    // What carries no moment of its own was written before the next that does.
    let mut next = recorder.now();
    for change in changes.iter_mut().rev() {
        next = change.latest.min(next);
        change.latest = next.max(change.earliest);
    }
    changes
}

fn change(words: &[String], terms: Terms, recorder: &Recorder) -> Option<(Event, Written, Option<At>)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let event = |key: &str| Event::parse(key.rsplit(':').next()?);
    let ends = |milliseconds: &str| Some(recorder.at_wall_time(milliseconds.parse().ok()?));
    match words.as_slice() {
        ["SET", key, value, "PXAT", end] => {
            let (end, lease, window) = (ends(end)?, terms.lease, terms.window);
            let (kind, token) = value.split_once(':')?;
            let token = token.to_owned();
            let (what, written) = match kind {
                "1c" => (Written::Claimed { token, until: end }, Some(end.saturating_sub(lease))),
                "1s" => {
                    let written = end.saturating_sub(window);
                    (Written::Sending { token, until: written + lease }, Some(written))
                }
                // The window counts from the delivery, not from the writing.
                "1d" => (Written::Done, None),
                "1u" => (Written::Unknown, None),
                _ => return None,
            };
            Some((event(key)?, what, written))
        }
        ["PEXPIREAT", key, end] => {
            let end = ends(end)?;
            // Whether it was a lease or a window is known only to who knows what the key holds.
            let sending_until = end.saturating_sub(terms.window) + terms.lease;
            Some((event(key)?, Written::Renewed { until: end, sending_until }, None))
        }
        ["DEL" | "UNLINK", key] => Some((event(key)?, Written::Deleted, None)),
        _ => None,
    }
}

/// The next command and what follows it. Notes that begin with `#` are passed over.
fn next_command(mut bytes: &[u8]) -> Option<(Vec<String>, &[u8])> {
    while bytes.first() == Some(&b'#') {
        bytes = line(bytes)?.1;
    }
    let (count, mut rest) = line(bytes)?;
    let count: usize = count.strip_prefix('*')?.parse().ok()?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, after) = line(rest)?;
        let length: usize = length.strip_prefix('$')?.parse().ok()?;
        words.push(String::from_utf8_lossy(after.get(..length)?).into_owned());
        rest = after.get(length + 2..)?;
    }
    Some((words, rest))
}

fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 2..]))
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn an_append_only_file_is_read_up_to_where_it_was_cut() {
        let terms = Terms { lease: Duration::from_secs(2), window: Duration::from_secs(3600) };
        let recorder = Recorder::new(Duration::from_secs(1), terms.lease);
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis());
        let now = now.expect("not so late");
        let mut file = b"#TS:1\r\n".to_vec();
        for words in [
            vec!["SELECT", "0"],
            vec!["SET", "dedup:generic:s1", "1c:aa", "PXAT", &(now + 2_000 + 100).to_string()],
            vec!["PEXPIREAT", "dedup:generic:s1", &(now + 2_000 + 300).to_string()],
            vec!["SET", "dedup:generic:s1", "1s:aa", "PXAT", &(now + 3_600_000 + 400).to_string()],
            vec!["DEL", "dedup:generic:s1"],
            vec!["SET", "dedup:whatsapp:message:1:b2", "1d:5:200", "PXAT", &(now + 3_600_000).to_string()],
            vec!["SET", "dedup:stripe:r3", "1c:bb", "PXAT", &(now + 2_000 + 900).to_string()],
        ] {
            file.extend(format!("*{}\r\n", words.len()).into_bytes());
            for word in words {
                file.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
            }
        }
        file.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n$90\r\nded");
        std::thread::sleep(Duration::from_millis(1));
        let changes = read(&file, terms, &recorder);
        let events: Vec<String> = changes.iter().map(|change| change.event.to_string()).collect();
        assert_eq!(events, ["s1", "s1", "s1", "s1", "b2", "r3"]);
        assert!(matches!(&changes[0].what, Written::Claimed { token, .. } if token == "aa"));
        assert!(matches!(&changes[2].what, Written::Sending { .. }));
        assert_eq!(changes[3].what, Written::Deleted);
        assert_eq!(changes[4].what, Written::Done);
        assert_eq!(changes[3].earliest, changes[2].earliest);
        assert!(changes[3].latest >= changes[3].earliest);
    }
}
