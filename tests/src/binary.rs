//! Finds the binary under test, and refuses one that is older than its sources.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The `stillframe` binary of the profile this test was built with.
///
/// Cargo tells a test where the binaries of its own package are, but not those of another one; so
/// the binary is looked up beside the test. `cargo test` alone doesn't rebuild it, and a test of
/// yesterday's binary would be worse than none: hence the comparison with the sources that cargo
/// has noted down beside it.
pub fn stillframe() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its executable");
    let profile = test
        .ancestors()
        .find(|folder| folder.join("deps").is_dir())
        .unwrap_or_else(|| panic!("{} is not in a target folder of cargo", test.display()));
    let binary = profile.join("stillframe");
    let built = modified(&binary).unwrap_or_else(|| {
        panic!(
            "{} is missing: run `cargo build --workspace` first, or everything by `tests/run`",
            binary.display()
        )
    });
    if let Some(source) = sources(&binary).into_iter().find(|source| modified(source) > Some(built))
    {
        panic!(
            "{} is older than {}: run `cargo build --workspace` first, or everything by `tests/run`",
            binary.display(),
            source.display()
        );
    }
    binary
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// The sources cargo lists in the binary's `.d` file: `binary: source source ...`.
fn sources(binary: &Path) -> Vec<PathBuf> {
    let Ok(list) = std::fs::read_to_string(binary.with_extension("d")) else {
        return Vec::new();
    };
    let list = list.split_once(": ").map_or("", |(_, sources)| sources);
    // A space within a path is escaped.
    list.replace("\\ ", "\0")
        .split_whitespace()
        .map(|source| PathBuf::from(source.replace('\0', " ")))
        .collect()
}
