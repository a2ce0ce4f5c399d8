//! The rules of the tree: what depends on what, where files may be, and what they may not contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};

/// What a crate of the workspace may depend on in the workspace, tests included.
const INNER_DEPENDENCIES: [(&str, &[&str]); 7] = [
    ("stillframe-protocol", &[]),
    ("stillframe-engine", &["stillframe-protocol"]),
    ("stillframe-coordinator", &["stillframe-protocol"]),
    ("stillframe-remote", &["stillframe-protocol"]),
    ("stillframe-sql", &["stillframe-protocol"]),
    (
        "stillframe",
        &[
            "stillframe-protocol",
            "stillframe-engine",
            "stillframe-coordinator",
            "stillframe-remote",
            "stillframe-sql",
        ],
    ),
    (
        "stillframe-tests",
        &[
            "stillframe",
            "stillframe-protocol",
            "stillframe-engine",
            "stillframe-coordinator",
            "stillframe-sql",
        ],
    ),
];

/// Libraries that only one crate may name.
const OWNED_LIBRARIES: [(&str, &str); 2] =
    [("dbsp", "stillframe-engine"), ("pgwire", "stillframe")];

const FOLDERS: [&str; 7] = ["engine", "coordinator", "remote", "sql", "pgserver", "tests", "docs"];

/// A file longer than this has a second idea in it.
const LINES_MAX: usize = 1000;
/// From here on it is worth a look.
const LINES_MANY: usize = 700;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the workspace")
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo describes the workspace")
}

fn dependencies(package: &Package) -> impl Iterator<Item = &str> {
    package.dependencies.iter().map(|dependency| dependency.name.as_str())
}

#[test]
fn crates_depend_on_what_they_may() {
    let allowed = BTreeMap::from(INNER_DEPENDENCIES);
    let metadata = metadata();
    let inner: BTreeSet<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(inner, allowed.keys().copied().collect(), "the crates of the workspace");
    for package in &metadata.packages {
        for dependency in dependencies(package).filter(|name| inner.contains(name)) {
            assert!(
                allowed[package.name.as_str()].contains(&dependency),
                "{} must not depend on {dependency}",
                package.name
            );
        }
    }
}

#[test]
fn some_libraries_have_one_owner() {
    for package in &metadata().packages {
        for (library, owner) in OWNED_LIBRARIES {
            let names_it = dependencies(package).any(|name| name == library);
            assert_eq!(
                names_it,
                package.name.as_str() == owner,
                "only {owner} names {library}, and it does; look at {}",
                package.name
            );
        }
    }
}

#[test]
fn folders_at_the_top() {
    let extra: Vec<_> = fs::read_dir(root())
        .expect("a readable folder")
        .map(|entry| entry.expect("a readable entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        // Not in the repository: what cargo and a server leave behind.
        .filter(|name| name != "target" && name != "stillframe-data")
        .filter(|name| !name.starts_with('.') && !FOLDERS.contains(&name.as_str()))
        .collect();
    assert!(extra.is_empty(), "no place for these at the top: {extra:?}");
}

#[test]
fn sources_are_short_finished_and_where_they_belong() {
    // In two halves, so that this file doesn't contain them.
    let unfinished = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
        concat!("HA", "CK"),
        concat!("#[ign", "ore"),
    ];
    let mut wrong = Vec::new();
    for path in sources() {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display();
        let text = fs::read_to_string(&path).expect("a readable source");
        let lines = text.lines().count();
        if lines > LINES_MAX {
            wrong.push(format!("{shown}: {lines} lines, more than {LINES_MAX}"));
        } else if lines > LINES_MANY {
            println!("{shown}: {lines} lines; is there a second idea in it?");
        }
        if path.file_name().is_some_and(|name| name == "mod.rs") {
            wrong.push(format!("{shown}: a module `foo` is `foo.rs` beside `foo/`"));
        }
        for word in unfinished {
            if text.contains(word) {
                wrong.push(format!("{shown}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = vec![root().join("README.md")];
    find(&root().join("docs"), "md", &mut documents);
    let mut broken = Vec::new();
    let mut followed = 0;
    for document in documents {
        let text = fs::read_to_string(&document).expect("a readable document");
        let folder = document.parent().expect("a file is in a folder");
        for link in links(&text).filter(|link| !link.contains("://") && !link.starts_with('#')) {
            followed += 1;
            let file = link.split('#').next().unwrap_or(link);
            if !folder.join(file).exists() {
                let shown = document.strip_prefix(root()).unwrap_or(&document);
                broken.push(format!("{}: {link}", shown.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing:\n{}", broken.join("\n"));
    assert!(followed > 0, "the README leads to the documents");
}

#[test]
fn decisions_are_numbered_without_gaps() {
    let mut records = Vec::new();
    find(&root().join("docs/decisions"), "md", &mut records);
    records.sort();
    assert!(!records.is_empty(), "there are decision records");
    for (index, record) in records.iter().enumerate() {
        let number = format!("{:04}", index + 1);
        let name = record.file_name().expect("a file has a name").to_string_lossy();
        assert!(name.starts_with(&format!("{number}-")), "{name} should be number {number}");
        let text = fs::read_to_string(record).expect("a readable record");
        assert!(
            text.starts_with(&format!("# {number}: ")),
            "{name} should be titled `# {number}: `"
        );
    }
}

/// Every Rust source of the repository.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        find(&root().join(folder), "rs", &mut found);
    }
    assert!(found.len() > 10, "sources are found");
    found
}

fn find(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            find(&path, ending, found);
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
}

/// The targets of Markdown's inline links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}
