//! Options that are refused, because the lab's workload without them would differ from fio's.

use super::{Effect, FioOption, ONE_TARGET, OptionKind};

const REPLAY_INSTEAD: &str = "Give the trace itself as the workload";

pub(super) static OPTIONS: &[FioOption] = &[
    refused_option(
        "bs_unaligned blocksize_unaligned",
        "makes requests of odd sizes, which drives refuse",
        "Give sizes that are multiples of 4k",
    ),
    refused_option("bs_is_seq_rand", "makes the block size depend on the address", "Write two jobs with a bs each"),
    refused_option("sprandom", "selects fio's own preconditioning order", "Precondition with `--precondition`"),
    refused_option("spr_num_regions", "refines sprandom", "Remove it"),
    refused_option("spr_op", "refines sprandom", "Remove it"),
    refused_option("spr_cs", "refines sprandom", "Remove it"),
    refused_option("file_append", "starts at the end of a file", "Give offset="),
    refused_option("opendir", "takes the files of a directory as targets", ONE_TARGET),
    refused_option("verify_only", "reads back the writes of another run", "Write the reads as a job with a read in rw"),
    refused_option(
        "experimental_verify",
        "reads back newly drawn requests instead of the writes",
        "Remove it. The option verify alone reads back the writes",
    ),
    refused_option(
        "trim_percentage",
        "trims blocks that verify has recorded",
        "Use rw=trimwrite, or another job with rw=randtrim",
    ),
    refused_option("read_iolog", "replays a trace", REPLAY_INSTEAD),
    refused_option("merge_blktrace_file", "merges traces", REPLAY_INSTEAD),
    refused_option("thinkcycles", "pauses for cycles of fio's processor", "Use thinktime"),
    refused_option("profile", "selects a workload built into fio", "Write the jobs of the workload"),
    refused_option("create_only", "does no I/O", "Remove the section"),
];

const fn refused_option(names: &'static str, help: &'static str, remedy: &'static str) -> FioOption {
    FioOption { names, kind: OptionKind::Text, help, effect: Effect::Refused(remedy) }
}
