//! Options that are refused, because the lab's workload without them would differ from fio's.

use super::{Effect, FioOption, Kind, ONE_TARGET};

const REPLAY_INSTEAD: &str = "give the trace itself as the workload, not through a job file";

pub(super) static OPTIONS: &[FioOption] = &[
    refused(
        "bs_unaligned",
        "blocksize_unaligned",
        "requests of odd sizes, which drives refuse",
        "give sizes that are multiples of 4k",
    ),
    refused(
        "bs_is_seq_rand",
        "",
        "makes the block size depend on the address",
        "write two jobs with a bs each",
    ),
    refused(
        "sprandom",
        "",
        "fio's own preconditioning order",
        "precondition with the experiment's prefill instead",
    ),
    refused("spr_num_regions", "", "refines sprandom", "remove it"),
    refused("spr_op", "", "refines sprandom", "remove it"),
    refused("spr_cs", "", "refines sprandom", "remove it"),
    refused("file_append", "", "starts at the end of a file", "give offset="),
    refused("opendir", "", "takes the files of a directory as targets", ONE_TARGET),
    refused(
        "verify_only",
        "",
        "reads back what another run has written",
        "write the reads as a job: the same rw as a read",
    ),
    refused(
        "experimental_verify",
        "",
        "reads back what it would write again, instead of what was written",
        "remove it: verify alone reads back what was written",
    ),
    refused(
        "trim_percentage",
        "",
        "trims blocks that verify remembers",
        "use rw=trimwrite or a job of its own with rw=randtrim",
    ),
    refused("read_iolog", "", "replays a trace", REPLAY_INSTEAD),
    refused("merge_blktrace_file", "", "merges traces", REPLAY_INSTEAD),
    refused(
        "thinkcycles",
        "",
        "a pause in cycles of fio's processor",
        "write a thinktime",
    ),
    refused("profile", "", "a workload built into fio", "write the job out"),
    refused("create_only", "", "does no I/O", "remove the section"),
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
