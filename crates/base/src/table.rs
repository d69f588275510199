/// A table of three columns, a line for each row: a name, what it is about, and what belongs to that. Tests have their
/// cases in it: what is done, and what is expected.
///
/// ```
/// for (what, number, expected) in base::table! {
///     "a power of two": 8_u32 => true,
///     "none": 6 => false,
/// } {
///     assert_eq!(number.is_power_of_two(), expected, "{what}");
/// }
/// ```
#[macro_export]
macro_rules! table {
    ($($name:literal: $about:expr => $value:expr,)*) => { [$(($name, $about, $value)),*] };
}
