//! Bytes of a valid file with a few numbers changed by the fuzzer.

/// Bytes of an edit: position (3), number of removed and inserted bytes (1), inserted bytes (6).
const EDIT_BYTES: usize = 10;
/// Maximum edits of an input.
const EDITS_MAX: usize = 8;

/// Returns the bytes after the edits of `input`.
pub fn edited(bytes: &[u8], input: &[u8]) -> Vec<u8> {
    let mut edited = bytes.to_vec();
    for edit in input.as_chunks::<EDIT_BYTES>().0.iter().take(EDITS_MAX) {
        if edited.is_empty() {
            break;
        }
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize % edited.len();
        let go = usize::from(edit[3] & 0xf).min(edited.len() - at);
        let come = usize::from(edit[3] >> 4) % 7;
        edited.splice(at..at + go, edit[4..4 + come].iter().copied());
    }
    edited
}
