//! The files that dbsp writes, kept in memory.
//!
//! dbsp hands the state of a circuit to the next one through a checkpoint's files. Nothing of them
//! has to survive the process yet, so there is no disk to wait for: a file is a list of immutable
//! blocks, and a block that is read is the block that was written, not a copy.
//!
//! Each circuit has a storage of its own. The next one starts with the files of the checkpoint it
//! is restored from ([`MemoryStorage::inherit`]); everything else goes with the old circuit, but for
//! the files that a frame still reads.

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use dbsp::storage::backend::{
    BlockLocation, FileId, FileReader, FileRw, FileWriter, StorageBackend, StorageError,
    StorageFileType, StoragePath, StoragePathPart,
};
use dbsp::storage::buffer_cache::FBuf;
use feldera_storage::fbuf::slab::{FBufSlabs, set_thread_slab_pool};
use feldera_storage::{DirEntry, FileCommitter};

/// Files in memory, as a storage backend of dbsp.
#[derive(Clone, Default)]
pub(crate) struct MemoryStorage(Arc<Files>);

#[derive(Default)]
struct Files {
    by_path: RwLock<HashMap<StoragePath, Arc<File>>>,
    used_bytes: Arc<AtomicI64>,
}

/// A complete file.
struct File {
    id: FileId,
    path: StoragePath,
    /// Each with its offset, ascending, without gaps.
    blocks: Vec<(u64, Arc<FBuf>)>,
    bytes: u64,
}

impl Drop for File {
    /// Gives blocks back to the allocator. Otherwise they would go to the free lists of the thread
    /// that drops the file; those of threads that aren't a circuit's keep 128 MiB for nobody.
    fn drop(&mut self) {
        static NOTHING: LazyLock<Arc<FBufSlabs>> = LazyLock::new(|| Arc::new(FBufSlabs::new(0)));
        let usual = set_thread_slab_pool(Some(Arc::clone(&NOTHING)));
        self.blocks.clear();
        set_thread_slab_pool(usual);
    }
}

impl MemoryStorage {
    /// A new storage that has only those files of this one that lie under `directory` or are named
    /// in `files`.
    pub(crate) fn inherit<'a>(
        &self,
        directory: &StoragePath,
        files: impl IntoIterator<Item = &'a StoragePath>,
    ) -> Self {
        let old = self.0.read();
        let named = files.into_iter().filter_map(|path| old.get_key_value(path));
        let inherited: HashMap<_, _> = old
            .iter()
            .filter(|(path, _)| path.prefix_matches(directory))
            .chain(named)
            .map(|(path, file)| (path.clone(), Arc::clone(file)))
            .collect();
        let bytes: u64 = inherited.values().map(|file| file.bytes).sum();
        Self(Arc::new(Files {
            by_path: RwLock::new(inherited),
            used_bytes: Arc::new(AtomicI64::new(signed(bytes))),
        }))
    }

    /// How many files there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.read().len()
    }
}

impl Files {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<StoragePath, Arc<File>>> {
        self.by_path.read().expect("no holder of this lock panics")
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<StoragePath, Arc<File>>> {
        self.by_path.write().expect("no holder of this lock panics")
    }

    fn insert(&self, file: Arc<File>) {
        self.used_bytes.fetch_add(signed(file.bytes), Ordering::Relaxed);
        if let Some(old) = self.write().insert(file.path.clone(), file) {
            self.used_bytes.fetch_sub(signed(old.bytes), Ordering::Relaxed);
        }
    }

    fn remove_if(&self, mut condemned: impl FnMut(&StoragePath, &Arc<File>) -> bool) -> usize {
        let mut removed = 0;
        self.write().retain(|path, file| {
            let keep = !condemned(path, file);
            if !keep {
                removed += 1;
                self.used_bytes.fetch_sub(signed(file.bytes), Ordering::Relaxed);
            }
            keep
        });
        removed
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("less than 2^63 bytes of memory")
}

impl StorageBackend for MemoryStorage {
    fn create_named(&self, name: &StoragePath) -> Result<Box<dyn FileWriter>, StorageError> {
        let file = File { id: FileId::new(), path: name.clone(), blocks: Vec::new(), bytes: 0 };
        Ok(Box::new(Writer { storage: self.clone(), file }))
    }

    fn open(&self, name: &StoragePath) -> Result<Arc<dyn FileReader>, StorageError> {
        match self.0.read().get(name) {
            Some(file) => Ok(Arc::new(Reader {
                storage: self.clone(),
                file: Arc::clone(file),
                keep: AtomicBool::new(true),
            })),
            None => Err(StorageError::stdio(ErrorKind::NotFound, "open", name)),
        }
    }

    fn list(
        &self,
        parent: &StoragePath,
        callback: &mut dyn FnMut(DirEntry),
    ) -> Result<(), StorageError> {
        let mut children: HashMap<StoragePath, StorageFileType> = HashMap::new();
        for (path, file) in self.0.read().iter() {
            let Some(mut rest) = path.prefix_match(parent) else { continue };
            let Some(child) = rest.next() else { continue };
            let name = parent.clone().join(StoragePathPart::from(child.as_ref()));
            let kind = match rest.next() {
                Some(_) => StorageFileType::Directory,
                None => StorageFileType::File { size: file.bytes },
            };
            children.insert(name, kind);
        }
        for (name, file_type) in children {
            callback(DirEntry { name, file_type: Ok(file_type) });
        }
        Ok(())
    }

    fn delete(&self, name: &StoragePath) -> Result<(), StorageError> {
        match self.0.remove_if(|path, _| path == name) {
            0 => Err(StorageError::stdio(ErrorKind::NotFound, "delete", name)),
            _ => Ok(()),
        }
    }

    fn delete_recursive(&self, name: &StoragePath) -> Result<(), StorageError> {
        self.0.remove_if(|path, _| path.prefix_matches(name));
        Ok(())
    }

    fn usage(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.0.used_bytes)
    }
}

/// A file that nobody can open yet.
struct Writer {
    storage: MemoryStorage,
    file: File,
}

impl FileRw for Writer {
    fn file_id(&self) -> FileId {
        self.file.id
    }

    fn path(&self) -> &StoragePath {
        &self.file.path
    }
}

impl FileWriter for Writer {
    fn write_block(&mut self, data: FBuf) -> Result<Arc<FBuf>, StorageError> {
        let block = Arc::new(data);
        self.file.blocks.push((self.file.bytes, Arc::clone(&block)));
        self.file.bytes += block.len() as u64;
        Ok(block)
    }

    fn complete(self: Box<Self>) -> Result<Arc<dyn FileReader>, StorageError> {
        let file = Arc::new(self.file);
        self.storage.0.insert(Arc::clone(&file));
        Ok(Arc::new(Reader { storage: self.storage, file, keep: AtomicBool::new(false) }))
    }
}

/// Reads a complete file, and takes it away at the end if nobody said that it must stay.
struct Reader {
    storage: MemoryStorage,
    file: Arc<File>,
    keep: AtomicBool,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({})", self.file.path)
    }
}

impl FileRw for Reader {
    fn file_id(&self) -> FileId {
        self.file.id
    }

    fn path(&self) -> &StoragePath {
        &self.file.path
    }
}

impl FileCommitter for Reader {
    fn commit(&self) -> Result<(), StorageError> {
        Ok(())
    }
}

impl FileReader for Reader {
    fn mark_for_checkpoint(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    fn read_block(&self, location: BlockLocation) -> Result<Arc<FBuf>, StorageError> {
        if location.after() > self.file.bytes {
            return Err(StorageError::stdio(ErrorKind::UnexpectedEof, "read", &self.file.path));
        }
        let after = self.file.blocks.partition_point(|(offset, _)| *offset <= location.offset);
        let blocks = &self.file.blocks[after.saturating_sub(1)..];
        match blocks.first() {
            Some((offset, block)) if *offset == location.offset && block.len() == location.size => {
                return Ok(Arc::clone(block));
            }
            _ => {}
        }
        let mut assembled = FBuf::with_capacity(location.size);
        for (offset, block) in blocks {
            let start = location.offset.max(*offset) - offset;
            let end = location.after().min(offset + block.len() as u64) - offset;
            assembled.extend_from_slice(&block[start as usize..end as usize]);
            if assembled.len() == location.size {
                break;
            }
        }
        Ok(Arc::new(assembled))
    }

    fn get_size(&self) -> Result<u64, StorageError> {
        Ok(self.file.bytes)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if !self.keep.load(Ordering::Relaxed) {
            // A file of the same name that came later stays.
            self.storage.0.remove_if(|_, file| Arc::ptr_eq(file, &self.file));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> FBuf {
        FBuf::from_slice(text.as_bytes())
    }

    fn listed(storage: &MemoryStorage, parent: &str) -> Vec<String> {
        let mut names = Vec::new();
        storage
            .list(&parent.into(), &mut |entry| {
                let kind = match entry.file_type {
                    Ok(StorageFileType::Directory) => "/",
                    _ => "",
                };
                names.push(format!("{}{kind}", entry.name));
            })
            .unwrap();
        names.sort();
        names
    }

    #[test]
    fn reads_what_was_written_across_blocks() {
        let storage = MemoryStorage::default();
        let mut writer = storage.create_named(&"a".into()).unwrap();
        let block = writer.write_block(bytes("0123")).unwrap();
        writer.write_block(bytes("4567")).unwrap();
        assert!(storage.open(&"a".into()).is_err(), "an incomplete file can't be opened");
        let reader = writer.complete().unwrap();

        let read = |offset, size| reader.read_block(BlockLocation { offset, size }).unwrap();
        assert!(Arc::ptr_eq(&read(0, 4), &block), "a whole block isn't copied");
        assert_eq!(read(2, 4).as_slice(), b"2345");
        assert_eq!(read(5, 2).as_slice(), b"56");
        assert_eq!(read(0, 8).as_slice(), b"01234567");
        assert!(reader.read_block(BlockLocation { offset: 6, size: 3 }).is_err());
        assert_eq!(storage.usage().load(Ordering::Relaxed), 8);
    }

    #[test]
    fn a_file_goes_with_its_reader_unless_kept() {
        let storage = MemoryStorage::default();
        let mut writer = storage.create_named(&"a".into()).unwrap();
        writer.write_block(bytes("x")).unwrap();
        drop(writer.complete().unwrap());
        assert_eq!(storage.len(), 0);
        assert_eq!(storage.usage().load(Ordering::Relaxed), 0);

        drop(storage.write(&"b".into(), bytes("yy")).unwrap());
        assert_eq!(storage.len(), 1, "write() keeps the file");
        storage.write(&"b".into(), bytes("z")).unwrap();
        assert_eq!(storage.read(&"b".into()).unwrap().as_slice(), b"z");
        assert_eq!(storage.usage().load(Ordering::Relaxed), 1);
    }

    #[test]
    fn directories_are_listed_and_deleted() {
        let storage = MemoryStorage::default();
        for path in ["top", "d/one", "d/two", "d/e/three", "dd/four"] {
            storage.write(&path.into(), bytes(path)).unwrap();
        }
        assert_eq!(listed(&storage, ""), ["d/", "dd/", "top"]);
        assert_eq!(listed(&storage, "d"), ["d/e/", "d/one", "d/two"]);
        storage.delete_recursive(&"d".into()).unwrap();
        assert_eq!(listed(&storage, ""), ["dd/", "top"]);
        assert!(storage.delete(&"d/one".into()).is_err());
    }

    #[test]
    fn an_heir_has_the_checkpoint_and_nothing_else() {
        let storage = MemoryStorage::default();
        for path in ["checkpoint/state", "old/state", "batch1", "batch2"] {
            storage.write(&path.into(), bytes(path)).unwrap();
        }
        let heir = storage.inherit(&"checkpoint".into(), [&"batch2".into()]);
        assert_eq!(listed(&heir, ""), ["batch2", "checkpoint/"]);
        assert_eq!(heir.usage().load(Ordering::Relaxed), 16 + 6);
        storage.delete_recursive(&"checkpoint".into()).unwrap();
        assert_eq!(heir.read(&"checkpoint/state".into()).unwrap().as_slice(), b"checkpoint/state");
    }
}
