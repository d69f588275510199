//! Wrong inputs, and the words that each message must contain. A message is one sentence with place
//! and remedy, and the exit code is 2.
//!
//! A row has the content of the file `x` in its folder (with the extension in the command line),
//! the command line, and the words of the message. Other tests cover the refusals of single
//! commands. This table collects typical mistakes, so that a worse message fails.

mod common;

use common::{folder, prints, refused, write};

/// Content of the file, the command line, and the words of the message, separated by `|`.
type Row = (&'static str, &'static str, &'static str);

/// Wrong arguments, and names that do not exist.
const ARGUMENTS: &[Row] = &[
    ("", "", "subcommand"),
    ("", "rum", "rum|run"),
    ("", "run --json", "the target is missing|warp list"),
    ("", "run one_strem", "one_strem|did you mean one_stream?"),
    ("", "run one_stream --device ssd_z", "--device|ssd_z|ssd_a"),
    ("", "run one_stream --scale half", "--scale|half|1/64"),
    ("", "run one_stream --scale 0", "--scale|0|1/64"),
    ("", "run one_stream --scale 1/3", "1/3|1/2"),
    ("", "run one_stream --scale auto:1/65536", "auto:1/65536|smallest scaled model"),
    ("", "run one_stream --drive-writes 0", "--drive-writes|above 0"),
    ("", "run one_stream --capacity 480", "480 means 480 bytes. Give a unit, for example 480GB"),
    ("", "whatif three_stream --drive 5", "5 means 5 bytes. Give a unit, for example 5TB"),
    ("", "whatif three_stream --drive 9999999TB", "capacity of|a drive like ssd_a has at most"),
    ("", "whatif three_stream --drive -1TB", "--drive -1TB is negative"),
    ("", "run one_stream --seed -1", "--seed -1 is negative"),
    ("", "serve --tcp 4420", "--tcp|give ADDRESS:PORT, such as 127.0.0.1:4420"),
    ("", "results compare a", "<B>|Usage: warp results compare"),
    ("", "run three_stream --device ssd_a --load-snapshot x.warp", "--device|--load-snapshot|Remove one of them"),
    ("", "run one_stream --set foo=1", "foo = 1: unknown field `foo`|Settings of a workload begin with `workload.`"),
    (
        "time,op,offset,size\n1,X,0,4096\n",
        "run x --device ssd_a --columns time,op,offset,bytes",
        "x:2: the operation is not|--columns op:READ/WRITE",
    ),
    ("", "run ssd_a", "ssd_a: this is a device|warp run WORKLOAD --device ssd_a"),
    (
        "",
        "run kvcache --device ssd_a",
        "no experiment or workload kvcache|kvcache_202206|others (`warp list` shows them)",
    ),
    ("", "lifetimes nosuch", "there is no workload or file nosuch"),
    ("[workload]\nkind = \"lsm\"\n", "run x.toml --device ssd_a", "Remove the line [workload]"),
    ("[workload]\nkind = \"lsm\"\n", "whatif x.toml", "Remove the line [workload]"),
    ("\n", "run x.toml", "x.toml|is empty|warp new"),
    ("", "run one_stream --drive-writes -1", "--drive-writes|-1"),
    ("", "run one_stream --drive-writes NaN", "--drive-writes|above 0"),
    ("", "run one_stream --drive-writes much", "--drive-writes|much|give a number, such as 0.5"),
    ("", "run one_stream --drive-writes 1001", "--drive-writes|1000"),
    ("", "run one_stream --precondition 101", "--precondition|100"),
    ("", "run one_stream --precondition -0.5", "--precondition|-0.5"),
    ("", "run one_stream --seconds 0", "--seconds|0.000001"),
    ("", "run one_stream --seconds 1", "seconds|timing"),
    ("", "run one_stream --seed one", "--seed|one|give a whole number"),
    ("", "run one_stream --steady-state full", "unexpected argument|full"),
    (
        "",
        "run one_stream --set geometry.chanels=4",
        "warp: geometry.chanels = 4: unknown field `chanels` (did you mean channels?)",
    ),
    (
        "",
        "run one_stream --set over_provisioning=0.2",
        "warp: over_provisioning = 0.2|Did you mean geometry.over_provisioning?",
    ),
    (
        "",
        "run kvcache_202206 --device ssd_a --drive-writes 1 --set soc_percent=20",
        "warp: soc_percent = 20|begin with `workload.`",
    ),
    (
        "",
        "run kvcache_202206 --device ssd_a --drive-writes 1 --set workload.sok_percent=20",
        "workload.sok_percent|did you mean soc_percent?",
    ),
    ("", "run one_stream --set geometry.channels=0", "geometry.channels"),
    ("", "run one_stream --set geometry.channels=some", "geometry.channels|some|expected a whole number from 0 to"),
    ("", "run one_stream --set geometry", "--set|PATH=VALUE"),
    ("", "run one_stream --set =4", "--set|PATH=VALUE"),
    ("", "run one_stream --set gc.victim_policy=greedi", "gc.victim_policy|greedi|greedy"),
    ("", "run one_stream --set gc.victim_policy={d_choices=5000}", "gc.victim_policy|5000|1 to 4096"),
    ("", "run one_stream --capacity big", "--capacity|big|8G"),
    ("", "run one_stream --feedback lifetime", "--feedback|lifetime"),
    ("", "run one_stream --feedback-every 2", "--feedback"),
    ("", "run one_stream --uncertainty --device warp_a", "warp_a|has no ensemble"),
    ("", "run one_stream --wriet 4", "--wriet|--drive-writes"),
    ("", "run one_stream --host-nqn nqn.x", "--target"),
    ("", "run latency --scale auto", "virtual time|Give a scale"),
    ("", "run latency --untimed --fio-json x", "--untimed|--fio-json"),
    ("", "run latency --fio-json x", "--fio-json|one run"),
    ("", "run one_stream --scale 1/1024 --save-snapshot x.warp", "--save-snapshot|2 runs"),
    ("", "run one_stream --events missing/x", "missing/x|folder that exists"),
    ("", "run one_stream --series .", ".|folder"),
    ("", "run missing.fio --device ssd_a", "missing.fio"),
    ("", "run ./missing/experiment.toml", "./missing/experiment.toml"),
    ("", "run three_stream_paper_shares", "--device NAME|warp list devices"),
    ("", "run missing.csv --device ssd_a", "missing.csv: there is no such file"),
    ("", "run missing.csv", "missing.csv: there is no such file"),
    ("", "whatif three_stream --array raid5,drives=4,drives=5", "--array|drives is given twice"),
    ("", "run three_stream --array raid5,level=raid6,drives=4", "--array|level is given twice"),
    ("", "whatif three_stream --array raid5,drives=4 --dollars-per-tb 9", "--dollars-per-tb|for an array|Leave it out"),
    ("", "whatif missing.csv", "missing.csv: there is no such file"),
    ("", "whatif traces/missing", "traces/missing: there is no such file"),
    ("", "lifetimes missing.csv", "missing.csv: there is no such file"),
    ("", "export missing.csv out", "missing.csv: there is no such file"),
    ("", "whatif job.fio", "job.fio: there is no such file"),
    ("", "run three_stream --columns op,offset,bytes", "--columns|three_stream is not a trace"),
    ("", "whatif three_stream --columns op,offset,bytes", "--columns|three_stream is not a trace"),
    ("", "whatif x.csv --columns op,ofset,bytes", "--columns|did you mean offset?"),
    ("", "whatif x.csv --columns time,op,offset", "--columns|has no column bytes"),
    ("", "whatif three_stream --op much", "--op|7%, 7 or 0.07"),
    ("", "whatif three_stream --op 1", "--op|1% or 100%"),
    ("", "run three_stream --variant NoFPD", "NoFPD|did you mean NoFDP?"),
    ("", "results show zzzz", "zzzz"),
    ("", "run one_stream --format cvs", "--format|csv"),
    ("", "run one_stream --json --format csv", "--json|--format"),
    (
        "[job]\nrw=randwrite\n",
        "run x.fio --device warp_default --load-snapshot missing.warp",
        "--device|--load-snapshot",
    ),
    ("[job]\nrw=randwrite\n", "run x.fio --load-snapshot missing.warp", "missing.warp"),
    ("[job]\nrw=randwrite\n", "run x.fio --load-snapshot x.fio", "x.fio|not a WARP snapshot"),
    ("", "reproduce one_strem", "did you mean one_stream?"),
    ("", "reproduce one_stream --update-golden", "--quick"),
    ("", "reproduce one_stream --quick --uncertainty", "--quick|--uncertainty"),
    ("", "reproduce one_stream --claims missing/x.md", "missing/x.md|folder that exists"),
    ("", "show device ssd_aa", "did you mean ssd_a?"),
    ("", "show device ssd_aa", "did you mean ssd_a?"),
    ("", "show device ssd_a --scale 1/0", "--scale|1/0"),
    ("", "show device ssd_a --set geometry.over_provisioning=0", "geometry.over_provisioning is 0"),
    ("", "show device ssd_a --set geometry.reclaim_unit_bytes=3", "geometry.reclaim_unit_bytes is 3"),
    ("", "show device missing.toml", "missing.toml"),
    ("", "show job three_strem", "did you mean three_stream?"),
    ("", "show job three_stream --options", "--options"),
    ("", "show job three_stream --device ssd_z", "ssd_z|Known names are"),
    ("", "export three_stream x --iolog-version 4", "--iolog-version|4"),
    ("", "export three_stream x --requests 0", "--requests|0"),
    ("", "export three_stream missing/x --requests 5", "missing/x|folder that exists"),
    ("", "export three_stream . --requests 5", "is a folder|--per-placement"),
    ("", "export three_strem x", "three_strem"),
    ("", "export three_stream - --per-placement --requests 5", "--per-placement|Give a folder"),
    ("", "reproduce one_stream --claims -", "--claims|Give a file"),
    ("", "reproduce one_stream --fidelity -", "--fidelity|Give a file"),
    ("", "reproduce one_stream --fidelity x --quick", "--fidelity|--quick"),
    ("", "drive inspect missing.warp", "missing.warp"),
    ("a word", "drive inspect x", "x|neither the data of a drive nor a snapshot|--save-snapshot|/dev/nvme0"),
    ("", "drive inspect x", "x|no such file|--data"),
    ("", "drive inspect /dev/nvme99", "/dev/nvme99|does not exist|nvme list"),
    ("", "drive inspect tcp:127.0.0.1:9", "tcp:127.0.0.1:9|no server listens|warp serve --tcp"),
    ("", "drive inspect /dev/nvme99 --host-nqn nqn.x", "--host-nqn|tcp:ADDRESS:PORT"),
    ("", "drive inspect x --endurance-group 2", "--endurance-group|Remove the option"),
    ("", "drive inspect tcp:nowhere", "tcp:nowhere|tcp:127.0.0.1:4420"),
    ("log", "drive inspect x --log 0x99", "--log|0x20, 0x21, 0x22 or 0x23"),
    ("log", "drive inspect x --log page", "--log|page|0x23"),
    ("", "drive inspect tcp:127.0.0.1:4420 --secret DHHC-1:x", "--host-nqn"),
    ("", "drive advise tcp:127.0.0.1:4420", "--owners"),
    ("", "drive advise tcp:127.0.0.1:4420 --chunks 0", "--chunks|0"),
    ("", "drive advise tcp:127.0.0.1:4420 --chunks 4 --every 0", "--every|0.01 to 86400"),
    ("", "drive advise tcp:127.0.0.1:4420 --chunks 4 --json missing/x", "missing/x|folder that exists"),
    ("", "drive advise tcp:somewhere --chunks 4", "tcp:somewhere|tcp:127.0.0.1:4420"),
    (
        "[job]\nrw=write\nwrite_bw_log\n",
        "run x.fio --device warp_default --untimed --drive-writes 1",
        "x.fio:3|no timing",
    ),
    (
        "[job]\nrw=write\nwrite_lat_log=no/such/x\n",
        "run x.fio --device pm9d3a --scale 1/1024 --drive-writes 1",
        "no/such/x|folder that exists",
    ),
    (
        "[job]\nrw=randread\nnorandommap\nnumber_ios=8\nthinktime=18250d\n",
        "run x.fio --device pm9d3a --scale 1/1024",
        "[job]|250 years|thinktime",
    ),
    (
        "[global]\nrw=randread\nnumber_ios=1\nstonewall\nstartdelay=18250d\n[a]\n[b]\n[c]\n[d]\n[e]\n[f]\n",
        "run x.fio --device pm9d3a --scale 1/1024",
        "[e]|250 years|startdelay",
    ),
    (
        "[job]\nrw=randread\nnorandommap\nbs=64m\nrate=1\nnumber_ios=1000\n",
        "run x.fio --device pm9d3a --capacity 8G",
        "[job]|250 years|rate",
    ),
    (
        "[job]\nrw=randread\nnorandommap\nbs=64m\nrate=1\nrate_process=poisson\nnumber_ios=1000\n",
        "run x.fio --device pm9d3a --capacity 8G",
        "[job]|250 years|rate",
    ),
    (
        "[job]\nrw=randread\n",
        "run x.fio --device warp_default --scale 1/1024 --untimed --drive-writes 2",
        "reads without writing|--drive-writes",
    ),
    ("", "bench --rounds 0", "--rounds"),
    ("", "bench --capacity-gib 1", "--capacity-gib"),
    ("", "bench fast", "fast|model"),
    ("", "drive check missing.img --waf-at-most 2", "missing.img|no such file"),
    ("text", "drive check x --waf-at-most 2", "x|neither the data of a drive nor a snapshot"),
    ("text", "drive check x --waf-at-most 2 --endurance-group 2", "--endurance-group|Remove the option"),
    ("text", "drive check x --waf-at-most 2 --host-nqn nqn.x --secret DHHC-1:x", "--host-nqn|tcp:ADDRESS:PORT"),
    ("", "drive check x", "--waf-at-most"),
    ("", "drive check x --waf-at-most 0.5", "--waf-at-most|1 or more"),
    ("", "drive check x --handle 2", "--handle|2:1.02"),
    ("", "drive check tcp:nowhere --waf-at-most 2", "tcp:nowhere|tcp:127.0.0.1:4420"),
    ("", "guest", "terminal|warp guest -- nvme list"),
    ("", "guest --with Rocks/DB -- true", "--with|rocksdb-tools"),
    ("", "guest --memory 64M -- true", "--memory|512M"),
    ("", "guest --timeout 0 -- true", "--timeout|1 or more"),
    ("", "guest --transport usb -- true", "--transport|vfio-user"),
    ("", "guest --share missing -- true", "--share|missing|folder"),
    ("", "guest --device ssd_z -- true", "ssd_z|Known names are"),
    ("", "guest --transport none --capacity 8G -- true", "--capacity|has no drive|--transport none"),
    ("a word", "guest --data x -- true", "x|contains data, but x.state"),
    ("", "guest --capacity big -- true", "--capacity|8G"),
    ("", "guest --build-only -- true", "--build-only"),
    ("", "serve --capacity 0", "--capacity|8G"),
    ("", "serve --fdp maybe", "--fdp|on or off"),
    ("", "serve --block 513", "--block|512 or 4096"),
    ("", "serve --tcp everywhere", "--tcp|everywhere"),
    ("", "serve --hosts x.toml", "--tcp"),
    ("", "completions basch", "basch|bash"),
    ("", "man rum", "did you mean run?"),
];

/// Job files, shown and run with the same message.
const JOB_FILES: &[(&str, &str)] = &[
    ("", "x.fio:1|no section describes a job"),
    ("rw=write\n", "x.fio:1|[global]"),
    ("[]\n", "x.fio:1|Write [name]"),
    ("[job\nrw=write\n", "x.fio:1|bracket"),
    ("[job]\nrw=randwirte\n", "x.fio:2|randwrite"),
    ("[job]\nblocksiez=4k\n", "x.fio:2|blocksize"),
    ("[job]\nqqqqqqqqqq=4k\n", "x.fio:2|docs/reference/job-files.md"),
    ("[job]\nbs=4q\n", "x.fio:2|128k"),
    ("[job]\nbs=0\n", "x.fio:2|from 1"),
    ("[job]\nbs\n", "x.fio:2|bs=..."),
    ("[job]\nbs=1.5k\n", "x.fio:2|128k"),
    ("[job]\nbs=(3/2)\n", "x.fio:2|1.5|whole"),
    ("[job]\nbs=(4*\n", "x.fio:2|(4*1024k)"),
    ("[job]\nbs=${WARP_NOT_SET}\n", "x.fio:2|WARP_NOT_SET|environment"),
    ("[job]\nbs=$pagesize\n", "x.fio:2|${SIZE}"),
    ("[job]\nsize=101%\n", "x.fio:2|100%"),
    ("[job]\nbssplit=4k/60:8k/60:16k\n", "x.fio:2|100"),
    ("[job]\nbssplit=,\n", "x.fio:2|4k/50:8k/50"),
    ("[job]\nsize=50.5%\n", "x.fio:2|as 50,"),
    ("[job]\nstartdelay=1s-2s\n", "x.fio:2|ms"),
    ("[job]\nioengine=cpuio\n", "x.fio:2|Remove the job"),
    ("[job]\nfilesize=900t\n", "x.fio:2|within the drive"),
    ("[job]\nwrite_mode=uncor\n", "x.fio:2|another mode"),
    ("[job]\nrandom_distribution=zipf:1.0\n", "x.fio:2|theta"),
    ("[job]\nrandom_distribution=zoned:80/20\n", "x.fio:2|zoned:80/20:20/80"),
    ("[job]\nrandom_distribution=gauss\n", "x.fio:2|normal:"),
    ("[job]\nrwmixread=120\n", "x.fio:2|100"),
    ("[job]\niodepth=0\n", "x.fio:2|from 1"),
    ("[job]\nnumjobs=5000\n", "x.fio:2|4096"),
    ("[job]\nrate=1m\nrate_iops=5\n", "x.fio:3|cannot be combined"),
    ("[job]\nrate_process=uniform\n", "x.fio:2|poisson"),
    ("[job]\nwait_for=other\n", "x.fio:2|no section above it is called [other]"),
    ("[job]\nverify=crc33\n", "x.fio:2|crc32"),
    ("[job]\nss=iops\n", "x.fio:2|iops_slope:5%"),
    ("[job]\nthinktime=5 parsecs\n", "x.fio:2|us, ms, s"),
    ("[job]\nplids=4-2\nfdp=1\n", "x.fio:2|smaller index first"),
    ("[job]\nplid_select=first\n", "x.fio:2|roundrobin"),
    ("[job]\nplid_select=scheme\ndp_scheme=missing\n", "x.fio:3|readable file"),
    ("[job]\nfdp=1\ndataplacement=streams\nplids=1\n", "x.fio:3|remove fdp=1"),
    ("[job]\noffset=100%\n", "x.fio:2|on the drive"),
    ("[job]\nsize=900t\n", "x.fio:2|drive"),
    ("[job]\nrw=randwrite\nbsrange=1-256m\n", "x.fio:3|norandommap"),
    ("[job]\nplids=0-65535,0-65535\nfdp=1\n", "x.fio:2|at most 128"),
    ("[a]\nnumjobs=4096\n[b]\n", "x.fio:3|4096 jobs"),
    ("[job]\nrw=randwrite\nsize=1k\n", "x.fio:3|smaller bs"),
    ("[job]\ninclude missing.fio\n", "x.fio:2|missing.fio"),
    ("[job]\ninclude x.fio\n", "x.fio:2|includes itself"),
    ("[job]\nzonemode=zbd\n", "x.fio:2|none"),
    ("[job]\nfilename=/dev/a:/dev/b\n", "x.fio:2|one section per target"),
    ("[job]\nread_iolog=trace\n", "x.fio:2|trace itself"),
];

/// Device profiles and experiments.
const TABLES: &[Row] = &[
    ("title = \"x\"\n[geometry\n", "show device ./x.toml", "./x.toml|line 2"),
    ("[geometry]\nchannels = 8\n", "show device ./x.toml", "./x.toml|geometry.channels|has no source"),
    (
        "[geometry]\nchannels = { value = 8, source = \" \" }\n",
        "show device ./x.toml",
        "./x.toml|geometry.channels|has no source",
    ),
    ("title = \"x\"\nsourse = \"y\"\n", "run ./x.toml", "./x.toml|sourse|source"),
    (
        "kind = \"lsm\"\nplacement = \"family\"\n",
        "run ./x.toml --device warp_default --drive-writes 1",
        "placement = \"family\"|[workload.families.NAME]",
    ),
    (
        "kind = \"lsm\"\n[families.hot]\noperation_shares = 2\n",
        "run ./x.toml --device warp_default --drive-writes 1",
        "./x.toml|families.hot.operation_shares|operation_share",
    ),
    (
        "kind = \"lsm\"\n[families.hot]\nvalue_bytes = 0\n",
        "run ./x.toml --device warp_default --drive-writes 1",
        "families.hot.value_bytes = 0|from 1 to",
    ),
    (
        "kind = \"lsm\"\nmax_total_wal_bytes = \"1GiB\"\n",
        "run ./x.toml --device warp_default --drive-writes 1",
        "max_total_wal_bytes|two families",
    ),
    ("kind = \"trce\"\nfiles = [\"a\"]\n", "run workloads/x.toml --device warp_default", "workloads/x.toml"),
];

fn check(file: &str, line: &str, words: &str) {
    let folder = folder();
    for name in ["x", "x.fio", "x.toml"] {
        if line.split_whitespace().any(|word| word.trim_start_matches("./") == name) && !file.is_empty()
            || name == "x.fio" && line.contains("x.fio")
        {
            write(&folder, name, file);
        }
    }
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let words: Vec<&str> = words.split('|').collect();
    refused(&folder, &arguments, &words);
}

/// Checks all rows and prints the wrong ones.
fn check_all(rows: impl Iterator<Item = Row>) {
    let fails = |(file, line, words): &Row| std::panic::catch_unwind(|| check(file, line, words)).is_err();
    let failed: Vec<Row> = rows.filter(fails).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn arguments() {
    // Without arguments the command shows its help, which is not one sentence.
    check_all(ARGUMENTS.iter().copied().filter(|(_, line, _)| !line.is_empty()));
}

#[test]
fn job_files() {
    let lines = ["show job x.fio", "run x.fio --device warp_default --untimed --drive-writes 1"];
    check_all(JOB_FILES.iter().flat_map(|(file, words)| lines.map(|line| (*file, line, *words))));
}

#[test]
fn tables() {
    check_all(TABLES.iter().copied());
}

/// Command lines that read the file `x`, or a file with another extension.
const READERS: &[(&str, &str)] = &[
    ("x.fio", "show job x.fio"),
    ("x.fio", "run x.fio --device warp_default --drive-writes 1"),
    ("x.inc", "show job includes.fio"),
    ("x.inc", "show job scheme.fio"),
    ("x.toml", "run ./x.toml --device warp_default --drive-writes 1"),
    ("x.toml", "run job.fio --device ./x.toml"),
    ("experiment.toml", "run ./experiment.toml"),
    ("x.csv", "run x.csv --device warp_default --drive-writes 1"),
    ("x.csv", "whatif x.csv"),
    ("x.warp", "run job.fio --load-snapshot x.warp"),
    ("x.warp", "drive inspect x.warp"),
    ("x.json", "results compare x.json x.json"),
    ("x.toml", "serve --device warp_default --vfio-user s --faults x.toml"),
    ("x.toml", "serve --device warp_default --tcp 127.0.0.1:0 --hosts x.toml"),
    ("x.img", "serve --device warp_default --vfio-user s --data x.img"),
    ("x.img.state", "serve --device warp_default --capacity 1GiB --vfio-user s --data x.img"),
];

/// Creates a folder with the other files that the readers need.
fn with_readers() -> tempfile::TempDir {
    let folder = folder();
    write(&folder, "job.fio", "[a]\nrw=write\n");
    write(&folder, "includes.fio", "[a]\nrw=write\ninclude x.inc\n");
    write(&folder, "scheme.fio", "[a]\nrw=write\nfdp=1\ndataplacement=fdp\nplid_select=scheme\ndp_scheme=x.inc\n");
    folder
}

/// A named pipe may never get a writer, so the command does not wait for one.
#[test]
fn named_pipes_are_refused_and_not_waited_for() {
    for (name, line) in READERS {
        let folder = with_readers();
        if *name == "x.img.state" {
            write(&folder, "x.img", "");
        }
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let place = folder.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, place, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let words = if *name == "x.img" { "not a regular file" } else { "named pipe" };
        refused(&folder, &arguments, &[name, words]);
    }
}

#[test]
fn devices_are_refused_and_not_read() {
    for (name, line) in READERS.iter().filter(|(name, _)| !name.starts_with("x.img")) {
        let folder = with_readers();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(name)).expect("a link");
        let arguments: Vec<&str> = line.split_whitespace().collect();
        refused(&folder, &arguments, &[name, "this is a device"]);
    }
}

#[test]
fn texts_are_read_up_to_a_bound() {
    let folder = folder();
    let huge = std::fs::File::create(folder.path().join("x.fio")).expect("it is made");
    huge.set_len(1 << 34).expect("it is of holes");
    refused(&folder, &["show", "job", "x.fio"], &["x.fio", "longer than 16 MiB"]);
    // The tree is eight deep and ten wide.
    for depth in 0..8 {
        let text = if depth == 7 { "bs=4k\n".to_string() } else { format!("include {}.inc\n", depth + 1).repeat(10) };
        write(&folder, &format!("{depth}.inc"), text);
    }
    write(&folder, "wide.fio", "[a]\nrw=write\ninclude 0.inc\n");
    refused(&folder, &["show", "job", "wide.fio"], &["includes more than 256 files", "Include fewer files"]);
}

#[test]
fn there_are_more_than_a_hundred() {
    assert!(ARGUMENTS.len() + JOB_FILES.len() + TABLES.len() > 100);
}

#[test]
fn remedies_are_options_of_the_command_that_prints_them() {
    use simulate::warning::WarningCommand;
    let folder = folder();
    for (command, name) in [(WarningCommand::Run, "run"), (WarningCommand::WhatIf, "whatif")] {
        let help = prints(&folder, &[name, "--help"]);
        for option in command.options() {
            let is_option = |line: &str| line.split_whitespace().any(|word| word == *option);
            assert!(help.lines().any(is_option), "warp {name} has no {option}");
        }
    }
}
