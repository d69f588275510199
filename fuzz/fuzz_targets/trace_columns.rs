//! Lines of columns with any bytes and several tables that describe them, also compressed.
//!
//! The input has a byte that chooses the drive and the mapping, a byte that chooses the table, and
//! the file.
#![no_main]

#[path = "../support/trace.rs"]
mod trace;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use workload::trace::TraceSettings;

/// Columns by number and by name, one column for two purposes, with all delimiters and units.
const TABLES: [&str; 4] = [
    "offset.column = 1\nlength.column = 2\noperation.column = 3\n",
    "volume = \"v\"\nprocess = \"v\"\noffset = { column = \"o\", unit = \"pages\" }\n\
     length = { column = \"l\", unit = \"sectors\" }\noperation.column = \"op\"\n\
     time = { column = \"t\", unit = \"s\" }\ndelimiter = \"semicolon\"\n",
    "delimiter = \"blanks\"\nplacement = 1\noffset = { column = 2, unit = \"kib\" }\nlength.column = 2\n\
     operation = { column = 4, read = [\"0\"], write = [\"1\"], trim = [], ignore = [\"\", \"xyz\"] }\n\
     time = { column = 3, unit = \"100ns\" }\n",
    "delimiter = \"tab\"\nheader = true\noffset = { column = 9, unit = \"sectors\" }\nlength.column = 1\n\
     operation.column = 1024\n",
];

static SETTINGS: LazyLock<Vec<TraceSettings>> = LazyLock::new(|| {
    let parse = |table| toml::from_str(&format!("format = \"csv\"\n[csv]\n{table}")).expect("a good table");
    TABLES.iter().map(parse).collect()
});

fuzz_target!(|input: &[u8]| {
    let [choice, table, bytes @ ..] = input else { return };
    trace::check(*choice, bytes, &SETTINGS[usize::from(*table) % TABLES.len()]);
});
