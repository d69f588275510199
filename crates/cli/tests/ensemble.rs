//! Profiles with an ensemble, as the `warp` command shows and runs them.

mod common;

use common::{folder, json, prints, refused, write};
use tempfile::TempDir;

/// A small drive whose measurements leave its over-provisioning and its isolation open.
const DRIVE: &str = r#"
title = "a drive"
ensemble_residual = 0.05

[geometry]
physical_bytes = { value = "8GiB", source = "ours" }
over_provisioning = { value = 0.2, source = "ours", fitted = true }
reclaim_unit_bytes = { value = "64MiB", source = "ours" }

[handles]
isolation = { value = "initially_isolated", source = "ours", fitted = true }

[[ensemble]]
loss = 1.5
settings = { "geometry.over_provisioning" = 0.2, "handles.isolation" = "initially_isolated" }

[[ensemble]]
loss = 2.5
settings = { "geometry.over_provisioning" = 0.17, "handles.isolation" = "persistently_isolated" }

[[ensemble]]
loss = 3.0
settings = { "geometry.over_provisioning" = 0.24 }
"#;

fn with_drive() -> TempDir {
    let folder = folder();
    write(&folder, "drive.toml", DRIVE);
    folder
}

#[test]
fn what_the_members_say_of_each_setting_is_shown() {
    let folder = with_drive();
    let shown = prints(&folder, &["devices", "drive.toml"]);
    for part in [
        "ensemble: 3 members, loss 1.5 to 3; ranges of write amplification are widened by 5.0 %",
        "0.17 to 0.24",
        "initially_isolated (2), persistently_isolated (1)",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let shown = json(&prints(&folder, &["devices", "drive.toml", "--json"]));
    assert_eq!(shown["ensemble"]["ensemble_residual"], 0.05);
    assert_eq!(shown["ensemble"]["ensemble"][1]["loss"], 2.5);
    let without = prints(&folder, &["devices", "warp_default"]);
    assert!(!without.contains("ensemble"), "{without}");
}

#[test]
fn a_member_that_is_no_drive_is_refused() {
    let folder = with_drive();
    write(&folder, "drive.toml", DRIVE.replace("0.24", "0.001"));
    refused(
        &folder,
        &["devices", "drive.toml"],
        &["drive.toml, ensemble[2].settings", "over_provisioning"],
    );
    write(&folder, "drive.toml", DRIVE.replace("ensemble_residual = 0.05", ""));
    refused(
        &folder,
        &["explain", "drive.toml"],
        &["drive.toml", "ensemble_residual"],
    );
}
