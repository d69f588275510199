//! Digest of the engine of this program: the sources and dependencies that decide a result.
//!
//! ```text
//! sources of the simulator and of our crates below it (SHA-256, at compile time) -\
//! Cargo.lock -> versions of the crates that the simulator depends on -------------> SHA-256
//! ```
//!
//! A cell's own input is not part of it. Files are sorted by their paths from the project's root,
//! so the same sources have the same digest on every machine. The digest is conservative: a changed
//! comment, or a crate that only draws tables, changes it and costs an unnecessary run. Tests do
//! not count. The compiler is not included, because all compilers give the same results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use rust_embed::RustEmbed;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The package in Cargo.lock that determines results.
const SIMULATOR: &str = "warp-simulate";

/// Digests of all files of the workspace crates. Their contents are not embedded. Cargo.lock
/// decides which of them count.
#[derive(RustEmbed)]
#[folder = "../../crates"]
#[metadata_only = true]
struct SourceDigests;

#[derive(Deserialize)]
struct CargoLock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// Registry or repository. `None` for packages of this workspace.
    source: Option<String>,
    /// Names, followed by the version if the lock file has several.
    #[serde(default)]
    dependencies: Vec<String>,
}

/// The digest of this program's engine, 64 hexadecimal digits.
pub(crate) fn digest() -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(|| {
        let lock = include_str!("../../../Cargo.lock");
        digest_of(&sources(&packages(lock)), lock)
    });
    &DIGEST
}

/// Digests of the sources by path, for the simulator and the workspace crates that it uses, without
/// tests.
fn sources(packages: &[Package]) -> BTreeMap<String, [u8; 32]> {
    let ours = below_the_simulator(packages).into_iter().filter(|package| package.source.is_none());
    let folders: BTreeSet<String> = ours.map(|package| package.name.replace("warp-", "").replace('-', "_")).collect();
    let counts = |path: &str| {
        let mut parts = path.split('/');
        let ours = parts.next().is_some_and(|folder| folders.contains(folder)) && parts.next() == Some("src");
        ours && path.ends_with(".rs") && !parts.any(|part| matches!(part, "tests" | "tests.rs"))
    };
    let file = |path: std::borrow::Cow<'static, str>| {
        let file = SourceDigests::get(&path).expect("it is in the list");
        (path.into_owned(), file.metadata.sha256_hash())
    };
    SourceDigests::iter().filter(|path| counts(path)).map(file).collect()
}

fn digest_of(sources: &BTreeMap<String, [u8; 32]>, lock: &str) -> String {
    let mut hash = Sha256::new();
    for (path, digest) in sources {
        hash.update(path);
        hash.update([0]);
        hash.update(digest);
    }
    let packages = packages(lock);
    let others = below_the_simulator(&packages).into_iter().filter(|package| package.source.is_some());
    for package in others {
        hash.update(format!("{} {}\n", package.name, package.version));
    }
    hex(hash.finalize())
}

fn packages(lock: &str) -> Vec<Package> {
    let lock: CargoLock = toml::from_str(lock).expect("Cargo wrote it");
    lock.package
}

/// The simulator and the packages that it depends on, in the order of the file.
fn below_the_simulator(packages: &[Package]) -> Vec<&Package> {
    let find = |dependency: &str| {
        let (name, version) = dependency.split_once(' ').unwrap_or((dependency, ""));
        packages.iter().position(|package| package.name == name && (version.is_empty() || version == package.version))
    };
    let mut found = BTreeSet::new();
    let mut open: Vec<usize> = find(SIMULATOR).into_iter().collect();
    while let Some(index) = open.pop() {
        if found.insert(index) {
            open.extend(packages[index].dependencies.iter().filter_map(|name| find(name)));
        }
    }
    found.into_iter().map(|index| &packages[index]).collect()
}

pub(crate) fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = include_str!("../../../Cargo.lock");

    #[test]
    fn sources_are_those_of_the_simulator_and_of_our_crates_below_it() {
        let sources = sources(&packages(LOCK));
        for folder in
            ["advise", "base", "applications", "experiment", "nvme", "nvme_spec", "simulate", "ssd", "workload"]
        {
            let path = format!("{folder}/src/lib.rs");
            assert!(sources.contains_key(&path), "{path} in {:?}", sources.keys());
        }
        for path in sources.keys() {
            let counts = !path.contains("tests") && !path.starts_with("target/") && !path.starts_with("cli/");
            assert!(counts && path.ends_with(".rs"), "{path}");
        }
    }

    #[test]
    fn another_source_or_version_is_another_engine() {
        let sources = sources(&packages(LOCK));
        let engine = digest_of(&sources, LOCK);
        assert_eq!(engine, digest());
        let mut other = sources.clone();
        other.get_mut("ssd/src/device/mod.rs").expect("a source")[0] ^= 1;
        assert_ne!(digest_of(&other, LOCK), engine, "a changed source");
        let mut other = sources.clone();
        other.remove("ssd/src/device/mod.rs");
        assert_ne!(digest_of(&other, LOCK), engine, "a missing source");
        let version = |name: &str| {
            let package = format!("name = \"{name}\"\nversion = \"");
            assert!(LOCK.contains(&package), "{name} is in use");
            digest_of(&sources, &LOCK.replace(&package, &format!("{package}9")))
        };
        assert_ne!(version("rand_xoshiro"), engine, "another generator of random numbers");
        assert_eq!(version("axum"), engine, "the web server decides no result");
    }
}
