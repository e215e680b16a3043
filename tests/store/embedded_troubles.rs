//! Files that come again, are held, or are no good.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hookonce::claim::{Forgotten, Found, Record, Recorded, State, Token};
use hookonce::config;
use hookonce::metrics::Metrics;
use hookonce::store::{self, ClaimStore, OpenError};

use crate::asking::{TERMS, claim, delivered, key, renew, settle, state, unknown};
use crate::open;

pub fn config_for(path: &Path) -> config::Store {
    config::Store::Embedded(config::Embedded { path: path.to_owned(), timeout: Duration::from_secs(10) })
}

async fn open_at(path: &Path) -> Arc<dyn ClaimStore> {
    open(config_for(path)).await.unwrap()
}

#[tokio::test]
async fn opening_a_file_again_keeps_what_is_done_and_ends_the_claims() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let [done, doubtful, claimed, sending] = std::array::from_fn(|_| key());
    let owner = Token::fresh();
    {
        let store = open_at(&path).await;
        settle(&*store, &done, delivered(204), TERMS.window).await;
        settle(&*store, &doubtful, unknown(), TERMS.window).await;
        for key in [&claimed, &sending] {
            assert_eq!(claim(&*store, key, &owner, TERMS).await, Found::Claimed);
        }
        assert!(store.promote(&sending, &owner, TERMS.window).await.unwrap());
    }
    let store = open_at(&path).await;
    let died = Record { at: None, result: Recorded::Unknown };
    for (key, found) in [
        (&done, Found::Done(delivered(204))),
        (&doubtful, Found::Done(unknown())),
        (&claimed, Found::Claimed),
        (&sending, Found::Done(died)),
    ] {
        assert_eq!(claim(&*store, key, &Token::fresh(), TERMS).await, found);
    }
}

fn open_beside(path: &Path) -> Result<Arc<dyn ClaimStore>, OpenError> {
    store::open_beside(&config_for(path), Arc::new(Metrics::new("test").unwrap()))
}

#[tokio::test]
async fn a_file_that_is_in_use_is_looked_at_and_changed_beside_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let store = open_at(&path).await;
    let [done, claimed, sending] = std::array::from_fn(|_| key());
    let owner = Token::fresh();
    settle(&*store, &done, delivered(204), TERMS.window).await;
    for key in [&claimed, &sending] {
        assert_eq!(claim(&*store, key, &owner, TERMS).await, Found::Claimed);
    }
    assert!(store.promote(&sending, &owner, TERMS.window).await.unwrap());
    {
        let beside = open_beside(&path).unwrap();
        for (key, expected) in
            [(&done, State::Done(delivered(204))), (&claimed, State::Claimed), (&sending, State::Sending)]
        {
            assert_eq!(state(&*beside, key, TERMS).await, Some(expected));
        }
        assert!(matches!(beside.forget(&done, TERMS, false).await.unwrap(), Forgotten::Freed(_)));
    }
    assert_eq!(claim(&*store, &done, &Token::fresh(), TERMS).await, Found::Claimed);
    for key in [&claimed, &sending] {
        assert!(renew(&*store, key, &owner, TERMS).await, "opening it beside its owner ended a claim");
    }
    assert!(open(config_for(&path)).await.is_err(), "the owner's lock is gone");
}

#[tokio::test]
async fn looking_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let refused = open_beside(&path).err().unwrap();
    assert!(refused.message.contains(&*path.display().to_string()) && refused.hint.is_some(), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_was_acknowledged_is_in_the_files_of_a_process_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, left) = (folder.path().join("keys.db"), folder.path().join("left.db"));
    let store = open_at(&path).await;
    let keys: Vec<_> = (0..20).map(|_| key()).collect();
    for key in &keys {
        settle(&*store, key, delivered(200), TERMS.window).await;
    }
    // What a kill would leave: the file and its log, without anything that closing does.
    for suffix in ["", "-wal"] {
        let name = |path: &Path| format!("{}{suffix}", path.display());
        std::fs::copy(name(&path), name(&left)).unwrap();
    }
    let store = open_at(&left).await;
    for key in &keys {
        assert_eq!(claim(&*store, key, &Token::fresh(), TERMS).await, Found::Done(delivered(200)));
    }
}

#[tokio::test]
async fn a_closed_file_is_whole_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let done = key();
    settle(&*open_at(&path).await, &done, delivered(200), TERMS.window).await;
    assert!(!folder.path().join("keys.db-wal").exists(), "the log was not merged into the file");

    let copy = folder.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    assert_eq!(claim(&*open_at(&copy).await, &done, &Token::fresh(), TERMS).await, Found::Done(delivered(200)));
}

#[tokio::test]
async fn a_file_in_use_is_refused_under_any_name_until_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("keys.db"), folder.path().join("link.db"));
    let first = open_at(&path).await;
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for name in [&path, &link] {
        let refused = open(config_for(name)).await.err().expect("a second store was opened on one file");
        assert!(refused.message.starts_with("another hookonce uses"), "{refused}");
        assert!(refused.hint.is_some());
    }
    drop(first);
    open_at(&path).await;
}

#[tokio::test]
async fn what_is_no_database_of_ours_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "x".repeat(4096)).unwrap();
    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (id)").unwrap();
    let newer = folder.path().join("newer.db");
    rusqlite::Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    let nowhere = folder.path().join("no such folder").join("keys.db");
    let is_folder = folder.path().join("folder.db");
    std::fs::create_dir(&is_folder).unwrap();

    for path in [&text, &foreign, &newer, &nowhere, &is_folder] {
        let before = std::fs::read(path).ok();
        let refused = open(config_for(path)).await.err().unwrap_or_else(|| panic!("{path:?} was opened"));
        assert!(refused.message.contains(&*path.display().to_string()), "{refused}");
        assert!(refused.hint.is_some(), "{refused}");
        assert_eq!(std::fs::read(path).ok(), before, "{path:?} was changed");
    }
}

#[tokio::test]
async fn a_store_outlives_the_runtime_it_was_opened_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let opening = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(open(config_for(&path))).unwrap()
    });
    let store = opening.join().unwrap();
    assert_eq!(claim(&*store, &key(), &Token::fresh(), TERMS).await, Found::Claimed);
}
