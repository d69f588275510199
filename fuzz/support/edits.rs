//! Bytes of a file that was whole, with a few numbers changed as the fuzzer wants it.

/// Bytes of an edit: where (3), how many bytes go and come (1), which come (6).
const EDIT_BYTES: usize = 10;
/// Edits of an input, at most.
const EDITS_MAX: usize = 8;

/// The bytes after the edits of `input`.
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
