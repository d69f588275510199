//! Options that are refused, because without them the lab would run another workload than fio.

use super::{Effect, FioOption, Kind, NO_VERIFY, ONE_TARGET};

const REPLAY_INSTEAD: &str = "give the trace itself as the workload, not through a job file";

pub(super) static OPTIONS: &[FioOption] = &[
    refused(
        "wait_for",
        "",
        "starts a job in the middle of others",
        "order jobs with stonewall",
    ),
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
        "num_range",
        "",
        "trims of several ranges",
        "write one range per trim, with bs=,,SIZE",
    ),
    refused(
        "random_sequence_stride",
        "",
        "refines random_distribution=sequence, which is refused too",
        "remove it",
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
    refused(
        "fill_device",
        "fill_fs",
        "writes until the file system is full",
        "drop it and `size`: the default size is the whole drive",
    ),
    refused("filesize", "", "another size than the region's", "give size="),
    refused("file_append", "", "starts at the end of a file", "give offset="),
    refused("opendir", "", "takes the files of a directory as targets", ONE_TARGET),
    refused("verify_pattern", "", "switches verify on", NO_VERIFY),
    refused("verify_only", "", "reads back without writing", NO_VERIFY),
    refused("experimental_verify", "", "switches verify on", NO_VERIFY),
    refused(
        "trim_percentage",
        "",
        "trims blocks that verify remembers",
        "use rw=trimwrite or a job of its own with rw=randtrim",
    ),
    refused("read_iolog", "", "replays a trace", REPLAY_INSTEAD),
    refused("merge_blktrace_file", "", "merges traces", REPLAY_INSTEAD),
    refused(
        "latency_target",
        "",
        "changes the queue depth while running",
        "give the iodepth that you expect",
    ),
    refused(
        "thinkcycles",
        "",
        "a pause in cycles of fio's processor",
        "write a thinktime",
    ),
    refused("thinktime_iotime", "", "pauses by the clock", "write thinktime_blocks"),
    refused("profile", "", "a workload built into fio", "write the job out"),
    refused(
        "exitall",
        "",
        "ends all jobs when the first one ends",
        "make the others time_based, or let the experiment say how much to write",
    ),
    refused(
        "zonesize",
        "",
        "issues only a part of each zone of the region",
        "give size= and offset= of the part",
    ),
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
