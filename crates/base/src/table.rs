/// A table with one line per row and three columns: a name, a subject and a value. Tests list their
/// cases in it, with input and expected result.
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
