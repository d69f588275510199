//! Owner map of the namespace, made from the command's options.

use std::collections::BTreeMap;
use std::path::Path;

use ::advise::{DataOwner, OwnerMap};
use base::input::RESULT_BYTES_MAX;
use experiment::LabError;
use initiator::inspect::feedback_logs::MonitoredNamespace;
use initiator::inspect::file_map::{self, BlockDevice, ByteExtent, UnownedCounts};

use super::connection::DriveConnection;
use super::notice::Notice;
use crate::arguments::AdviseArgs;
use crate::{AnyError, bad_option, read_text};

/// Builds the owner map, with notices about it.
pub fn map(command: &AdviseArgs, drive: &DriveConnection) -> Result<(OwnerMap, Vec<Notice>), AnyError> {
    let (map, source, notices) = match (&command.owners, &command.files, command.chunks) {
        (Some(file), ..) => (read(file)?, file.display().to_string(), Vec::new()),
        (_, Some(directory), _) => {
            let depth = command.depth.map(|depth| depth as usize);
            let (map, omissions) = files(directory, depth, drive)?;
            let notice = (omissions != UnownedCounts::default()).then_some(Notice::Omissions(omissions));
            (map, directory.display().to_string(), notice.into_iter().collect())
        }
        (.., chunks) => {
            let chunks = chunks.expect("clap requires one of the three options");
            (split(&drive.namespace, chunks)?, "--chunks".to_string(), Vec::new())
        }
    };
    check(&map, &source, &drive.namespace)?;
    Ok((map, notices))
}

/// Locates the owners of a directory again. Also returns the number of owners that did not exist at
/// the start and are ignored.
pub fn rescan(directory: &Path, depth: Option<u64>, known: &OwnerMap) -> Result<(OwnerMap, usize), AnyError> {
    let found = file_map::directory(directory, depth.map(|depth| depth as usize))?;
    let (owners, left_out) = known_owners(known, found.owners);
    // If the directory is empty for a moment, the previous extents are kept.
    Ok((OwnerMap::new(owners).unwrap_or_else(|_| known.clone()), left_out))
}

/// Known owners with the extents found now, and the number of found owners that are not known.
fn known_owners(known: &OwnerMap, found: Vec<(String, Vec<ByteExtent>)>) -> (Vec<DataOwner>, usize) {
    let mut found: BTreeMap<String, Vec<ByteExtent>> = found.into_iter().collect();
    let owner =
        |owner: &DataOwner| DataOwner { extents: found.remove(&owner.name).unwrap_or_default(), ..owner.clone() };
    let owners = known.owners().iter().map(owner).collect();
    (owners, found.len())
}

fn read(file: &Path) -> Result<OwnerMap, LabError> {
    let text = read_text(file, RESULT_BYTES_MAX)?;
    OwnerMap::parse(&text).map_err(|error| LabError::invalid(&file.display().to_string(), error.to_string()))
}

fn files(
    directory: &Path,
    depth: Option<usize>,
    drive: &DriveConnection,
) -> Result<(OwnerMap, UnownedCounts), AnyError> {
    let found = file_map::directory(directory, depth)?;
    if !is_same(&found.device, drive) {
        let problem = format!(
            "{} is on namespace {}, not on {}. Give a directory of the monitored namespace",
            directory.display(),
            found.device.namespace,
            drive.name
        );
        return Err(bad_option("--files", problem).into());
    }
    let owner = |(name, extents)| DataOwner { name, extents, placement: None };
    let owners = OwnerMap::new(found.owners.into_iter().map(owner).collect());
    let owners = owners.map_err(|error| bad_option("--files", format!("{}: {error}", directory.display())))?;
    Ok((owners, found.omissions))
}

/// Returns true if a block device of this machine is the monitored namespace. If one of them has no
/// NGUID, the names decide, and over NVMe/TCP the sizes.
fn is_same(device: &BlockDevice, drive: &DriveConnection) -> bool {
    let namespace = &drive.namespace;
    match (device.nguid, drive.block_device()) {
        (Some(nguid), _) if namespace.nguid != [0; 16] => nguid == namespace.nguid,
        (_, Some(name)) => name == device.namespace,
        (_, None) => device.bytes == namespace.bytes(),
    }
}

/// Splits the namespace into equal owners, named by their byte ranges.
fn split(namespace: &MonitoredNamespace, chunks: u64) -> Result<OwnerMap, LabError> {
    if chunks > namespace.blocks {
        let problem =
            format!("{chunks} chunks are too many, because the namespace has {} logical blocks", namespace.blocks);
        return Err(bad_option("--chunks", problem));
    }
    let edge = |index: u64| {
        let block = u128::from(namespace.blocks) * u128::from(index) / u128::from(chunks);
        block as u64 * namespace.block_bytes
    };
    let owner = |index: u64| {
        let (start, end) = (edge(index), edge(index + 1));
        DataOwner { name: format!("{start}..{end}"), extents: vec![(start, end)], placement: None }
    };
    let owners = OwnerMap::new((0..chunks).map(owner).collect());
    Ok(owners.expect("parts of a whole do not overlap"))
}

/// Rejects owners beyond the end of the namespace or with an unknown placement identifier.
fn check(map: &OwnerMap, source: &str, namespace: &MonitoredNamespace) -> Result<(), LabError> {
    for owner in map.owners() {
        let end = owner.extents.iter().map(|(_, end)| *end).max().unwrap_or(0);
        if end > namespace.bytes() {
            let problem = format!(
                "{} ends at byte {end}, but namespace {} has {} bytes",
                owner.name,
                namespace.nsid,
                namespace.bytes()
            );
            return Err(LabError::invalid(source, problem));
        }
        if let Some(placement) = owner.placement.filter(|&placement| placement >= namespace.placement_handles) {
            let problem = format!(
                "{} has placement identifier {placement}, but namespace {} has 0 to {}",
                owner.name,
                namespace.nsid,
                namespace.placement_handles.saturating_sub(1)
            );
            return Err(LabError::invalid(source, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace() -> MonitoredNamespace {
        MonitoredNamespace {
            nsid: 1,
            endurance_group: 1,
            block_bytes: 512,
            blocks: 10,
            nguid: [0; 16],
            handle_mask: u16::MAX,
            placement_handles: 2,
        }
    }

    #[test]
    fn chunks_cover_the_namespace() {
        let map = split(&namespace(), 3).expect("chunks");
        let names: Vec<&str> = map.owners().iter().map(|owner| owner.name.as_str()).collect();
        assert_eq!(names, ["0..1536", "1536..3072", "3072..5120"]);
        assert!(split(&namespace(), 11).is_err());
    }

    #[test]
    fn owners_keep_their_order_when_they_are_found_elsewhere() {
        let map = OwnerMap::parse("b,0,10,1\na,10,10\n").expect("a map");
        let found = vec![("a".to_string(), vec![(50, 60)]), ("new".to_string(), vec![(0, 5)])];
        let (owners, left_out) = known_owners(&map, found);
        let all: Vec<_> =
            owners.iter().map(|owner| (owner.name.as_str(), owner.extents.len(), owner.placement)).collect();
        assert_eq!((all, left_out), (vec![("b", 0, Some(1)), ("a", 1, None)], 1));
    }

    #[test]
    fn owners_outside_of_the_namespace_are_refused() {
        let refused = |line: &str| {
            let map = OwnerMap::parse(line).expect("a map");
            check(&map, "owners.csv", &namespace()).map_err(|error| error.to_string())
        };
        assert_eq!(refused("a,0,5120,1"), Ok(()));
        assert_eq!(
            refused("a,0,5121"),
            Err("owners.csv: a ends at byte 5121, but namespace 1 has 5120 bytes".to_string())
        );
        assert!(refused("a,0,512,2").is_err_and(|error| error.contains("namespace 1 has 0 to 1")));
    }
}
