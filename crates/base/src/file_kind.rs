//! Kinds of files.

/// Computes the kind of a file, which is its name with `#` for each number.
pub fn file_kind(name: &[u8], kind: &mut Vec<u8>) {
    kind.clear();
    for byte in name {
        if !byte.is_ascii_digit() {
            kind.push(*byte);
        } else if kind.last() != Some(&b'#') {
            kind.push(b'#');
        }
    }
}
