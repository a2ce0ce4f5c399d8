//! Tells the crate what it is built from: processes of a cluster must be of one build.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

/// All that decides what goes between processes and how it is understood.
const SOURCES: [&str; 7] = [
    "../Cargo.lock",
    "../engine/src",
    "../engine/protocol/src",
    "../coordinator/src",
    "../remote/src",
    "../sql/src",
    "src",
];

fn main() -> io::Result<()> {
    let mut files = BTreeSet::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files)?;
    }
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    println!("cargo::rustc-env=STILLFRAME_SOURCES={:016x}", hasher.finish());
    Ok(())
}

fn collect(path: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else {
        files.insert(path.to_owned());
    }
    Ok(())
}
