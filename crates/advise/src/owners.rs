//! Owners of logical blocks (files, ranges or streams), found by offset.

use serde::Serialize;

/// A unit of data that can be written with another placement identifier, as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DataOwner {
    /// Name: a path, a stream, or a word that the user chose.
    pub name: String,
    /// Byte ranges from the beginning of the namespace: first byte, byte after the last.
    pub extents: Vec<(u64, u64)>,
    /// Placement identifier that the owner writes with, if known.
    pub placement: Option<u16>,
}

impl DataOwner {
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|(start, end)| end - start).sum()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    #[error("{one} and {other} both own byte {offset}. Give every byte at most one owner")]
    Overlap { one: String, other: String, offset: u64 },
    #[error("line {line} {problem}. Write OWNER,START_BYTES,BYTES[,PLACEMENT], such as db/wal,0,1073741824,1")]
    Line { line: usize, problem: String },
    #[error("no owner has an extent, so there is nothing to advise on")]
    Empty,
}

#[derive(Clone, Debug)]
pub struct OwnerMap {
    owners: Vec<DataOwner>,
    /// Start, end and owner of every extent, ascending.
    extents: Vec<(u64, u64, u32)>,
}

impl OwnerMap {
    /// Creates a map of owners, whose extents must not overlap.
    ///
    /// # Errors
    /// Two owners have the same byte, or no owner has an extent.
    pub fn new(owners: Vec<DataOwner>) -> Result<OwnerMap, OwnerError> {
        let mut extents: Vec<(u64, u64, u32)> = Vec::new();
        for (index, owner) in owners.iter().enumerate() {
            let filled = owner.extents.iter().filter(|(start, end)| end > start);
            extents.extend(filled.map(|&(start, end)| (start, end, index as u32)));
        }
        if extents.is_empty() {
            return Err(OwnerError::Empty);
        }
        extents.sort_unstable();
        if let Some(pair) = extents.windows(2).find(|pair| pair[0].1 > pair[1].0) {
            return Err(OwnerError::Overlap {
                one: owners[pair[0].2 as usize].name.clone(),
                other: owners[pair[1].2 as usize].name.clone(),
                offset: pair[1].0,
            });
        }
        Ok(OwnerMap { owners, extents })
    }

    /// Reads a range file with a line `OWNER,START_BYTES,BYTES[,PLACEMENT]` for each extent.
    /// Several lines with the same owner form one owner. Empty lines and lines that begin with `#`
    /// are ignored. Names cannot contain commas.
    ///
    /// # Errors
    /// A line has another format, two lines give an owner different placement identifiers, or the
    /// errors of [`OwnerMap::new`].
    pub fn parse(text: &str) -> Result<OwnerMap, OwnerError> {
        let mut owners: Vec<DataOwner> = Vec::new();
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        for (line, content) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let owner = parse_line(content).map_err(|problem| OwnerError::Line { line, problem })?;
            match owners.iter_mut().find(|known| known.name == owner.name) {
                Some(known)
                    if owner.placement.is_some() && known.placement.is_some_and(|id| Some(id) != owner.placement) =>
                {
                    let problem = format!("gives {} another placement identifier than an earlier line", owner.name);
                    return Err(OwnerError::Line { line, problem });
                }
                Some(known) => {
                    known.extents.extend(owner.extents);
                    known.placement = known.placement.or(owner.placement);
                }
                None => owners.push(owner),
            }
        }
        OwnerMap::new(owners)
    }

    pub fn owners(&self) -> &[DataOwner] {
        &self.owners
    }

    pub fn find(&self, offset: u64) -> Option<usize> {
        let after = self.extents.partition_point(|(start, ..)| *start <= offset);
        let (_, end, owner) = self.extents[..after].last()?;
        (offset < *end).then_some(*owner as usize)
    }
}

fn parse_line(content: &str) -> Result<DataOwner, String> {
    let fields: Vec<&str> = content.split(',').map(str::trim).collect();
    let (name, start, bytes, placement) = match fields[..] {
        [name, start, bytes] => (name, start, bytes, None),
        [name, start, bytes, placement] => (name, start, bytes, Some(placement).filter(|text| !text.is_empty())),
        _ => return Err(format!("has {} fields", fields.len())),
    };
    if name.is_empty() {
        return Err("has no name of an owner".to_string());
    }
    let number = |what: &str, text: &str| {
        text.parse::<u64>().map_err(|_| format!("has {what} = {text:?}, which is not a number"))
    };
    let start = number("START_BYTES", start)?;
    let bytes = number("BYTES", bytes)?;
    let end = start.checked_add(bytes).filter(|end| *end > start);
    let end = end.ok_or_else(|| format!("has BYTES = {bytes}, which makes no range from {start}"))?;
    let placement = placement.map(|text| {
        text.parse::<u16>().map_err(|_| format!("has PLACEMENT = {text:?}, which is not a placement identifier"))
    });
    Ok(DataOwner { name: name.to_string(), extents: vec![(start, end)], placement: placement.transpose()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_and_gaps_belong_to_nobody() {
        let map = OwnerMap::parse("# a comment\nlog,0,4096,1\n\ndata,8192,4096\nlog,16384,1,1\n").expect("a map");
        let name = |offset| map.find(offset).map(|index| map.owners()[index].name.as_str());
        assert_eq!(
            [name(0), name(4095), name(4096), name(8192), name(16384), name(16385)],
            [Some("log"), Some("log"), None, Some("data"), Some("log"), None]
        );
        assert_eq!(map.owners()[0].bytes(), 4097);
        assert_eq!((map.owners()[0].placement, map.owners()[1].placement), (Some(1), None));
    }

    #[test]
    fn what_is_not_a_map_is_refused_with_its_place() {
        let error = |text: &str| OwnerMap::parse(text).expect_err("no map").to_string();
        assert!(error("a,0,10\nb,9,1").starts_with("a and b both own byte 9"));
        assert!(error("a,0").starts_with("line 1 has 2 fields"));
        assert!(error("\na,x,1").starts_with("line 2 has START_BYTES = \"x\", which is not a number"));
        assert!(error("a,0,0").starts_with("line 1 has BYTES = 0, which makes no range from 0"));
        assert!(error("a,0,1,70000").contains("which is not a placement identifier"));
        assert!(error("a,0,1,1\na,1,1,2").starts_with("line 2 gives a another placement identifier"));
        assert!(error("# nothing").starts_with("no owner has an extent"));
    }
}
