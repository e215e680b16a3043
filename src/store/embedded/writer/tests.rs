//! Operations that wait together are committed together, and none spoils another.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc as blocking;

use super::*;
use crate::claim::{Found, Terms, Token};

const TERMS: Terms = Terms { lease: Duration::from_secs(30), window: Duration::from_secs(3600) };

fn writer() -> (Arc<Writer>, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    (Arc::new(Writer::start(Table::open(&path).unwrap(), ()).unwrap()), path, folder)
}

/// Keeps the thread busy until the returned sender is dropped, so that jobs gather behind it.
async fn busy(writer: &Arc<Writer>) -> blocking::Sender<()> {
    let (go, wait) = blocking::channel::<()>();
    let (begun, begins) = oneshot::channel();
    let writer = Arc::clone(writer);
    tokio::spawn(async move {
        writer
            .run(move |_| {
                let _ = begun.send(());
                let _ = wait.recv();
            })
            .await
    });
    begins.await.unwrap();
    go
}

fn rows(path: &std::path::Path) -> i64 {
    Connection::open(path).unwrap().query_row("SELECT count(*) FROM keys", [], |row| row.get(0)).unwrap()
}

async fn gathered(writer: &Writer, count: usize) {
    let jobs = writer.jobs.as_ref().unwrap();
    while jobs.max_capacity() - jobs.capacity() < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_waits_is_committed_together_and_answered_after_that() {
    let (writer, path, _folder) = writer();
    let go = busy(&writer).await;
    let claims: Vec<_> = (0..100)
        .map(|number| {
            let (writer, path) = (Arc::clone(&writer), path.clone());
            tokio::spawn(async move {
                // Sees how many rows the others have committed so far.
                writer
                    .run(move |table| {
                        let found = table.claim(&format!("key {number}"), &Token::fresh(), TERMS);
                        (found.unwrap(), rows(&path))
                    })
                    .await
            })
        })
        .collect();
    gathered(&writer, 100).await;
    drop(go);
    for claim in claims {
        assert_eq!(claim.await.unwrap().unwrap(), (Found::Claimed, 0), "a commit of its own");
    }
    assert_eq!(rows(&path), 100);
}

#[tokio::test]
async fn an_error_inside_one_operation_is_its_own() {
    let (writer, path, _folder) = writer();
    let go = busy(&writer).await;
    let claim = |key: &'static str| {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move { writer.run(move |table| table.claim(key, &Token::fresh(), TERMS)).await })
    };
    let before = claim("before");
    let failing = {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move {
            writer.run(|table| table.connection.execute("INSERT INTO keys VALUES ('no value', NULL, 0)", [])).await
        })
    };
    let after = claim("after");
    gathered(&writer, 3).await;
    drop(go);
    assert!(matches!(before.await.unwrap(), Ok(Ok(Found::Claimed))));
    assert!(matches!(failing.await.unwrap(), Ok(Err(_))));
    assert!(matches!(after.await.unwrap(), Ok(Ok(Found::Claimed))));
    assert_eq!(rows(&path), 2);
}

#[tokio::test]
async fn a_failed_commit_fails_all_it_would_have_committed_and_nothing_after_it() {
    let (writer, path, _folder) = writer();
    let go = busy(&writer).await;
    let claim = |key: &'static str| {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move { writer.run(move |table| table.claim(key, &Token::fresh(), TERMS)).await })
    };
    let with_it = claim("with it");
    let breaks_it = {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move {
            // A deferred constraint is judged by COMMIT.
            let statements = "CREATE TABLE parent (id PRIMARY KEY);
                 CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
                 INSERT INTO child VALUES (1);";
            writer.run(move |table| table.connection.execute_batch(statements).unwrap()).await
        })
    };
    gathered(&writer, 2).await;
    drop(go);
    assert!(matches!(with_it.await.unwrap(), Err(StoreError::Refused(_))));
    assert!(matches!(breaks_it.await.unwrap(), Err(StoreError::Refused(_))));
    assert!(matches!(claim("later").await.unwrap(), Ok(Ok(Found::Claimed))));
    assert_eq!(rows(&path), 1);
}

#[tokio::test]
async fn a_transaction_that_ends_in_the_middle_fails_every_operation_of_it() {
    let (writer, path, _folder) = writer();
    let go = busy(&writer).await;
    let run = |statement: &'static str| {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move { writer.run(move |table| table.connection.execute_batch(statement).unwrap()).await })
    };
    let before = run("INSERT INTO keys VALUES ('before', '1u:0', 9000000000000000000)");
    let ends_it = run("ROLLBACK");
    let after = run("INSERT INTO keys VALUES ('after', '1u:0', 9000000000000000000)");
    gathered(&writer, 3).await;
    drop(go);
    for answer in [before, ends_it, after] {
        assert!(matches!(answer.await.unwrap(), Err(StoreError::Refused(_))));
    }
    assert_eq!(rows(&path), 0);
}

#[tokio::test]
async fn the_work_of_a_caller_that_has_gone_is_not_done() {
    let (writer, path, _folder) = writer();
    let go = busy(&writer).await;
    let gone = {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move { writer.run(|table| table.claim("gone", &Token::fresh(), TERMS)).await })
    };
    gathered(&writer, 1).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    drop(go);
    writer.run(|_| ()).await.unwrap();
    assert_eq!(rows(&path), 0);
}

#[tokio::test]
async fn rows_whose_time_has_come_are_removed_by_the_by() {
    let (writer, path, _folder) = writer();
    let many = BITE * 2 + 10;
    let insert = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many})
         INSERT INTO keys SELECT 'old ' || i, '1u:0', 1 FROM n"
    );
    writer.run(move |table| table.connection.execute_batch(&insert).unwrap()).await.unwrap();
    assert!(matches!(writer.run(|table| table.claim("new", &Token::fresh(), TERMS)).await, Ok(Ok(Found::Claimed))));
    let deadline = Instant::now() + Duration::from_secs(30);
    while rows(&path) > 1 {
        assert!(Instant::now() < deadline, "{} rows are left", rows(&path));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_commit_waits_for_the_disk() {
    let (writer, _, _folder) = writer();
    let setting = writer.run(|table| table.connection.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0)));
    assert_eq!(setting.await.unwrap().unwrap(), 2, "2 is `FULL`");
}
