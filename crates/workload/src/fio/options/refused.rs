//! Options that are refused, because the lab's workload without them would differ from fio's.

use super::{Effect, FioOption, Kind, ONE_TARGET};

const REPLAY_INSTEAD: &str = "Give the trace itself as the workload";

pub(super) static OPTIONS: &[FioOption] = &[
    refused(
        "bs_unaligned",
        "blocksize_unaligned",
        "makes requests of odd sizes, which drives refuse",
        "Give sizes that are multiples of 4k",
    ),
    refused(
        "bs_is_seq_rand",
        "",
        "makes the block size depend on the address",
        "Write two jobs with a bs each",
    ),
    refused(
        "sprandom",
        "",
        "selects fio's own preconditioning order",
        "Precondition with the experiment's prefill",
    ),
    refused("spr_num_regions", "", "refines sprandom", "Remove it"),
    refused("spr_op", "", "refines sprandom", "Remove it"),
    refused("spr_cs", "", "refines sprandom", "Remove it"),
    refused("file_append", "", "starts at the end of a file", "Give offset="),
    refused("opendir", "", "takes the files of a directory as targets", ONE_TARGET),
    refused(
        "verify_only",
        "",
        "reads back the writes of another run",
        "Write the reads as a job with a read in rw",
    ),
    refused(
        "experimental_verify",
        "",
        "reads back newly drawn requests instead of the writes",
        "Remove it. The option verify alone reads back the writes",
    ),
    refused(
        "trim_percentage",
        "",
        "trims blocks that verify has recorded",
        "Use rw=trimwrite, or another job with rw=randtrim",
    ),
    refused("read_iolog", "", "replays a trace", REPLAY_INSTEAD),
    refused("merge_blktrace_file", "", "merges traces", REPLAY_INSTEAD),
    refused(
        "thinkcycles",
        "",
        "pauses for cycles of fio's processor",
        "Use thinktime",
    ),
    refused(
        "profile",
        "",
        "selects a workload built into fio",
        "Write the jobs of the workload",
    ),
    refused("create_only", "", "does no I/O", "Remove the section"),
];

const fn refused(name: &'static str, aliases: &'static str, help: &'static str, remedy: &'static str) -> FioOption {
    FioOption {
        name,
        aliases,
        kind: Kind::Text,
        help,
        effect: Effect::Refused(remedy),
    }
}
