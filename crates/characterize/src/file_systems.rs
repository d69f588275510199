//! Recognizes file systems, partition tables and volumes at the start of a namespace, so that a
//! mistyped device is refused.

/// Bytes at the start of a namespace that have all known signatures.
pub const HEAD_BYTES: u64 = 128 << 10;

/// Name, offset and bytes of a signature, as in libblkid.
const SIGNATURES: [(&str, usize, &[u8]); 13] = [
    ("a partition table (GPT)", 512, b"EFI PART"),
    ("a partition table (GPT)", 4096, b"EFI PART"),
    ("an ext file system", 1080, &[0x53, 0xef]),
    ("an XFS file system", 0, b"XFSB"),
    ("a Btrfs file system", 0x1_0040, b"_BHRfS_M"),
    ("an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("an LVM volume", 536, b"LVM2 001"),
    ("a LUKS volume", 0, b"LUKS\xba\xbe"),
    ("a member of an MD array", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("a member of an MD array", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("a bcache device", 4120, &[0xc6, 0x85, 0x73, 0xf6]),
];

/// Name of the first signature in the head of a device.
pub fn signature(head: &[u8]) -> Option<&'static str> {
    let has = |at: usize, bytes: &[u8]| head.get(at..at + bytes.len()) == Some(bytes);
    let found = SIGNATURES.iter().find(|(_, at, bytes)| has(*at, bytes)).map(|(name, ..)| *name);
    // A boot sector has this mark too, so a table needs a partition with a type.
    let is_partitioned = has(510, &[0x55, 0xaa]) && (0..4).any(|entry| head.get(450 + 16 * entry) > Some(&0));
    found.or_else(|| is_partitioned.then_some("a partition table (MBR)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_found_at_their_places_only() {
        for (name, at, bytes) in SIGNATURES {
            let mut head = vec![0; HEAD_BYTES as usize];
            head[at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(signature(&head), Some(name));
            assert_eq!(signature(&head[..at]), None, "{name} in a short head");
            head.rotate_right(1);
            assert_eq!(signature(&head), None, "{name} at another place");
        }
        let mut head = vec![0; HEAD_BYTES as usize];
        head[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(signature(&head), None, "a boot sector without partitions");
        head[450] = 0x83;
        assert_eq!(signature(&head), Some("a partition table (MBR)"));
    }
}
