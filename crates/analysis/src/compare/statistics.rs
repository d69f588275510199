//! Parses FDP statistics of a drive, as nvme-cli and `warp drive inspect` print them.

use serde_json::Value;

use super::run::{SeedRun, TOTALS, WAF};

/// Reads FDP statistics from JSON. `keys` name the host and media bytes, which may be numbers or
/// strings. `None` without these keys.
pub(super) fn parse_json(json: &Value, keys: [&str; 2]) -> Result<Option<SeedRun>, String> {
    let [Some(host), Some(media)] = keys.map(|key| json.get(key)) else {
        return Ok(None);
    };
    let bytes = |key: &str, value: &Value| -> Result<f64, String> {
        let bytes = match value {
            // Integers of 128 bits arrive as floating point numbers.
            Value::Number(number) => number.as_f64().filter(|bytes| *bytes >= 0.0 && bytes.fract() == 0.0),
            Value::String(text) => decimal(text),
            _ => None,
        };
        bytes.ok_or_else(|| format!("{key:?} is {value}. {COUNT_EXPECTED}"))
    };
    statistics(bytes(keys[0], host)?, bytes(keys[1], media)?).map(Some)
}

/// The last statistics in the output of `nvme fdp stats`, and a note on earlier ones. `None`
/// without any.
pub(super) fn parse_text(text: &str) -> Result<Option<(SeedRun, Option<String>)>, String> {
    let [host, media] = ["(HBMW)", "(MBMW)"];
    let lines = text.lines().zip(1..);
    let values = |name: &'static str| {
        lines.clone().filter_map(move |(line, number)| {
            let (_, value) = line.split_once(name)?;
            let value = value.trim_start();
            Some((number, value.strip_prefix(':').unwrap_or(value).trim()))
        })
    };
    let Some((host_line, host_value)) = values(host).last() else {
        return Ok(None);
    };
    let Some((media_line, media_value)) = values(media).last().filter(|(line, _)| *line >= host_line) else {
        return Err(format!(
            "line {host_line}: {host} is not followed by {media}. Give the whole output of `nvme fdp stats`"
        ));
    };
    let bytes = |name: &str, line: usize, value: &str| {
        let name = name.trim_matches(['(', ')']);
        decimal(value).ok_or_else(|| format!("line {line}: {name} is {value:?}. {COUNT_EXPECTED}"))
    };
    let last = [bytes(host, host_line, host_value)?, bytes(media, media_line, media_value)?];
    let count = values(host).count();
    let first = |name| values(name).next().and_then(|(_, value)| decimal(value));
    let note = (count > 1).then(|| {
        let between = first(host).zip(first(media)).map(|(host, media)| [last[0] - host, last[1] - media]);
        let remedy = between.filter(|[host, media]| *host > 0.0 && *media >= 0.0).map(|[host, media]| {
            format!(
                ". It counts since the drive was made. To compare the writes between the first and the last, give \
                 {{\"hbmw\": {host}, \"mbmw\": {media}}}"
            )
        });
        format!("the last of {count} statistics was read{}", remedy.unwrap_or_default())
    });
    Ok(Some((statistics(last[0], last[1])?, note)))
}

const COUNT_EXPECTED: &str = "Give a whole decimal number of bytes, as `nvme fdp stats` prints it";

/// Thousands separators of locales, which nvme-cli prints.
const SEPARATORS: [char; 7] = [',', '.', '\'', ' ', '\u{a0}', '\u{202f}', '\u{2019}'];

/// Parses a decimal number of at most 128 bits, as nvme-cli prints it (`uint128_t_to_l10n_string`).
/// `None` for other text.
fn decimal(text: &str) -> Option<f64> {
    let separator = text.chars().find(|letter| SEPARATORS.contains(letter));
    let groups: Vec<&str> = separator.map_or(vec![text], |separator| text.split(separator).collect());
    // nvme-cli counts bytes, so groups have fewer than three digits after a separator of several
    // bytes.
    let has_threes = separator.is_some_and(|separator| separator.len_utf8() == 1);
    let length_is_right = |index: usize, group: &str| match index {
        _ if !has_threes => !group.is_empty(),
        0 => (1..=3).contains(&group.len()),
        _ => group.len() == 3,
    };
    let is_number = groups
        .iter()
        .enumerate()
        .all(|(index, group)| length_is_right(index, group) && group.bytes().all(|digit| digit.is_ascii_digit()));
    groups.concat().parse::<u128>().ok().filter(|_| is_number).map(|bytes| bytes as f64)
}

fn statistics(host_bytes: f64, media_bytes: f64) -> Result<SeedRun, String> {
    if host_bytes == 0.0 {
        let problem = "nothing was written yet (HBMW is 0), so there is no WAF. Read the statistics again after the \
                       host has written";
        return Err(problem.to_string());
    }
    let [host, media] = TOTALS.map(str::to_string);
    Ok(SeedRun::single(vec![
        (WAF.to_string(), media_bytes / host_bytes),
        (host, host_bytes / 1e9),
        (media, media_bytes / 1e9),
    ]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::compare::Side;

    type Metrics = Vec<(String, f64)>;

    fn metrics(text: &str) -> Metrics {
        Side::read("a file", text).expect("a result").metrics_of_first()
    }

    fn notes(text: &str) -> Vec<String> {
        Side::read("a file", text).expect("a result").notes
    }

    fn refusal(text: &str) -> String {
        Side::read("x", text).expect_err("no result").to_string()
    }

    #[test]
    fn statistics_of_nvme_cli_are_read_as_text_and_as_json() {
        let counted = |host: f64, media: f64| {
            let counters = [("WAF", media / host), ("host, GB", host / 1e9), ("media, GB", media / 1e9)];
            counters.map(|(name, value)| (name.to_string(), value)).to_vec()
        };
        let waf = counted(2e6, 3e6);
        let text = "Host Bytes with Metadata Written (HBMW): 2,000,000\nMedia Bytes with Metadata Written (MBMW): 3,000,000\n\
                    Media Bytes Erased (MBE): 0\n";
        assert_eq!(metrics(text), waf);
        assert_eq!(metrics("{\"hbmw\":2000000,\"mbmw\":3000000,\"mbe\":0}"), waf);
        assert_eq!(metrics("{\"hbmw\":\"2000000\",\"mbmw\":\"3000000\"}"), waf);
        let inspected = json!({ "enabled": { "statistics": { "host_bytes_written": 2, "media_bytes_written": 3 } } });
        assert_eq!(metrics(&inspected.to_string()), counted(2.0, 3.0));
    }

    #[test]
    fn statistics_are_read_with_the_separators_of_locales() {
        for [host, media] in [
            ["2000000", "3000000"],
            ["2,000,000", "3,000,000"],
            ["2.000.000", "3.000.000"],
            ["2'000'000", "3'000'000"],
            // With separators of several bytes, nvme-cli counts bytes instead of characters.
            ["2\u{202f}0\u{202f}0\u{202f}0\u{202f}000", "3\u{202f}0\u{202f}0\u{202f}0\u{202f}000"],
            ["20\u{a0}00\u{a0}000", "30\u{a0}00\u{a0}000"],
        ] {
            let text = format!(
                "Host Bytes with Metadata Written (HBMW): {host}\nMedia Bytes with Metadata Written (MBMW): {media}\n"
            );
            assert_eq!(metrics(&text)[0], ("WAF".to_string(), 1.5), "{host}");
        }
        // Integers of 128 bits in JSON.
        let wide = "{\"hbmw\":200000000000000000000000000,\"mbmw\":300000000000000000000000000}";
        assert!((metrics(wide)[0].1 - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_count_that_is_not_decimal_is_refused_with_its_line() {
        for media in [
            "0x2dc6c0",
            "3e6",
            "3.0e6",
            "-3000000",
            "+3000000",
            "3.00 MB",
            "3,000,000 bytes",
            "3MiB",
            "2,5",
            "3,00,000",
            "3,000.000",
            ",300",
            "300,",
            "3,,000",
            "",
            "n/a",
            "NaN",
            "3 of 7",
            "340282366920938463463374607431768211456",
        ] {
            let text = format!(
                "Host Bytes with Metadata Written (HBMW): 2000000\nMedia Bytes with Metadata Written (MBMW): {media}\n"
            );
            assert_eq!(
                refusal(&text),
                format!(
                    "x: line 2: MBMW is {media:?}. Give a whole decimal number of bytes, as `nvme fdp stats` prints it"
                )
            );
        }
        for media in ["-3", "1.5", "\"0x10\"", "\"1e3\"", "\"inf\"", "\"-3\"", "true", "null", "[3]"] {
            assert_eq!(
                refusal(&format!("{{\"hbmw\":2,\"mbmw\":{media}}}")),
                format!("x: \"mbmw\" is {media}. Give a whole decimal number of bytes, as `nvme fdp stats` prints it")
            );
        }
    }

    #[test]
    fn of_several_statistics_the_last_ones_are_read() {
        let one = |host: u64, media: u64| {
            format!(
                "Host Bytes with Metadata Written (HBMW): {host}\nMedia Bytes with Metadata Written (MBMW): {media}\n"
            )
        };
        let both = format!("before\n{}after\n{}", one(10, 20), one(30, 90));
        assert_eq!(metrics(&both)[0], ("WAF".to_string(), 3.0));
        let said = "a file: the last of 2 statistics was read. It counts since the drive was made. To compare the \
                    writes between the first and the last, give {\"hbmw\": 20, \"mbmw\": 70}";
        assert_eq!(notes(&both), [said]);
        assert_eq!(notes(&format!("{}{}", one(30, 90), one(10, 20))), ["a file: the last of 2 statistics was read"]);
        assert_eq!(notes(&one(10, 20)), [""; 0]);
        // Counters of different readings must not be divided by each other.
        let torn = format!("{}Host Bytes with Metadata Written (HBMW): 30\n", one(10, 20));
        assert_eq!(
            refusal(&torn),
            "x: line 3: (HBMW) is not followed by (MBMW). Give the whole output of `nvme fdp stats`"
        );
    }

    #[test]
    fn a_drive_that_was_not_written_has_no_write_amplification() {
        let text = "Host Bytes with Metadata Written (HBMW): 0\nMedia Bytes with Metadata Written (MBMW): 0\n";
        for text in [text, "{\"hbmw\":0,\"mbmw\":0}"] {
            let said = refusal(text);
            assert!(said.starts_with("x: nothing was written yet (HBMW is 0), so there is no WAF."), "{said}");
        }
    }

    #[test]
    fn fewer_media_bytes_than_host_bytes_are_doubted() {
        for text in [
            "Host Bytes with Metadata Written (HBMW): 20\nMedia Bytes with Metadata Written (MBMW): 10\n",
            "{\"hbmw\":20,\"mbmw\":10}",
        ] {
            assert!(notes(text).concat().contains("(MBMW) are fewer than host bytes (HBMW)"), "{text}");
        }
        assert_eq!(notes("{\"hbmw\":20,\"mbmw\":20}"), [""; 0]);
    }
}
