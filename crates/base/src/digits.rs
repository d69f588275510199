//! Numbers, printed for people.

/// A number in four significant digits. Larger numbers keep all digits before the point.
pub fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
