//! The files that a configuration was read from: itself, and those of its secrets.
//!
//! What was read is remembered by its hash, so that a change is seen whatever it does to the file's times and inode.
//! Kubernetes changes a mounted ConfigMap by turning a link to another folder.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Content by its hash; `None` where there was nothing to read.
type Print = Option<[u8; 32]>;

/// Files and what was in them when they were read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: RefCell<BTreeMap<PathBuf, Print>>,
}

impl Sources {
    /// Reads a file, and remembers what it held.
    pub(super) fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = std::fs::read(path);
        self.files.borrow_mut().insert(path.to_owned(), bytes.as_ref().ok().map(|bytes| print(bytes)));
        let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8");
        String::from_utf8(bytes?).map_err(not_text)
    }

    /// The same files as they are now.
    #[must_use]
    pub fn now(&self) -> Self {
        let now = |path: &PathBuf| std::fs::read(path).ok().map(|bytes| print(&bytes));
        let files = self.files.borrow().keys().map(|path| (path.clone(), now(path))).collect();
        Self { files: RefCell::new(files) }
    }

    /// Whether the same files held the same.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        *self.files.borrow() == *other.files.borrow()
    }

    /// Keeps an eye on the files of `other` too, where this does not know them: a file that cannot be read names none
    /// of its secrets.
    pub fn add(&mut self, other: &Self) {
        for (path, print) in &*other.files.borrow() {
            self.files.get_mut().entry(path.clone()).or_insert(*print);
        }
    }
}

fn print(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_what_is_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let sources = Sources::default();
        assert!(sources.read(&path).is_err());
        assert!(sources.now().same_as(&sources), "absent is absent");
        std::fs::write(&path, "one").expect("written");
        assert!(!sources.now().same_as(&sources), "it has come");
        assert_eq!(sources.read(&path).expect("read"), "one");
        std::fs::write(&path, "one").expect("written");
        assert!(sources.now().same_as(&sources), "touched is not changed");
        std::fs::write(&path, "two").expect("written");
        assert!(!sources.now().same_as(&sources), "it has changed");
    }
}
