//! Where a device keeps its one record: in a file, in memory for tests, or where the app says.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::Result;

/// The record of a device, which is read and replaced in one step.
pub trait Storage {
    /// Pass the record to `change`, or `None` if there never was one, and keep what it returns. Nothing else may read or write
    /// the record meanwhile. When this returns `Ok`, the new record is durable. If `change` refuses, the old record stays.
    fn update(&mut self, change: &mut dyn FnMut(Option<&str>) -> Result<Option<String>>) -> Result<()>;
}

/// A file. It is replaced as a whole, and a lock keeps other processes away. On a phone, keep it out of backups: a restored
/// record would repeat what was spent since.
pub struct FileStorage {
    path: PathBuf,
}

impl FileStorage {
    pub fn new(path: impl AsRef<Path>) -> FileStorage {
        FileStorage { path: path.as_ref().to_path_buf() }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    }
}

impl Storage for FileStorage {
    fn update(&mut self, change: &mut dyn FnMut(Option<&str>) -> Result<Option<String>>) -> Result<()> {
        let lock = OpenOptions::new().create(true).append(true).open(self.beside(".lock"))?;
        lock.lock()?;
        let record = match std::fs::read_to_string(&self.path) {
            Ok(record) => Some(record),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let Some(after) = change(record.as_deref())? else {
            return Ok(());
        };
        let fresh = self.beside(".new");
        let mut file = File::create(&fresh)?;
        file.write_all(after.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, &self.path)?;
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            // Without this, a power cut may bring the old record back.
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// A record that ends with the program: for tests.
#[derive(Default)]
pub struct MemoryStorage {
    pub record: Option<String>,
}

impl Storage for MemoryStorage {
    fn update(&mut self, change: &mut dyn FnMut(Option<&str>) -> Result<Option<String>>) -> Result<()> {
        if let Some(after) = change(self.record.as_deref())? {
            self.record = Some(after);
        }
        Ok(())
    }
}
