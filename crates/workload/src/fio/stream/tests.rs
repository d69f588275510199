use super::super::{Job, SchemeEntry, parse};
use super::*;
use crate::RequestOperation::{Read, Write};
use crate::WorkloadTarget;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn jobs(text: &str) -> Vec<Job> {
    parse(text, "test.fio").unwrap_or_else(|error| panic!("{error}")).jobs
}

fn stream(text: &str, device_bytes: u64) -> JobStream {
    let plan = JobPlan::new(
        &jobs(text)[0],
        0,
        WorkloadTarget { device_bytes, placement_count: 8, ..WorkloadTarget::default() },
    )
    .unwrap_or_else(|error| panic!("{error}"));
    JobStream::new(plan, 0)
}

fn all(text: &str, device_bytes: u64) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    stream(text, device_bytes).fill(&mut requests, 1_000_000);
    assert!(requests.len() < 1_000_000, "the job does not end");
    requests
}

fn offsets(requests: &[IoRequest]) -> Vec<u64> {
    requests.iter().map(|request| request.offset_bytes).collect()
}

/// A job, the drive's bytes, the first requests (kind, offset, bytes), their number and the last
/// offset, as fio 3.42 issues them on a target called dev.bin.
type Golden = (&'static str, u64, [(RequestOperation, u64, u32); 5], usize, u64);

const GOLDENS: [Golden; 5] = [
    (
        "[a]\nrw=randwrite\nbssplit=4k/60:16k/40\n",
        MIB,
        [
            (Write, 1024000, 16384),
            (Write, 905216, 16384),
            (Write, 688128, 16384),
            (Write, 540672, 4096),
            (Write, 630784, 4096),
        ],
        147,
        151552,
    ),
    (
        "[a]\nrw=randrw\nrwmixread=70\nnorandommap\nrandseed=7\n",
        MIB,
        [
            (Write, 528384, 4096),
            (Write, 557056, 4096),
            (Read, 847872, 4096),
            (Read, 1044480, 4096),
            (Read, 36864, 4096),
        ],
        256,
        40960,
    ),
    (
        "[a]\nfilename=dev.bin\nrw=randwrite\nrandom_distribution=zipf:1.2\n",
        8 * MIB,
        [
            (Write, 7208960, 4096),
            (Write, 3100672, 4096),
            (Write, 6004736, 4096),
            (Write, 6762496, 4096),
            (Write, 5304320, 4096),
        ],
        2048,
        2412544,
    ),
    (
        "[a]\nrw=randwrite\nrandom_distribution=zoned:80/20:20/80\nrandom_generator=tausworthe64\n",
        8 * MIB,
        [
            (Write, 606208, 4096),
            (Write, 253952, 4096),
            (Write, 1236992, 4096),
            (Write, 5251072, 4096),
            (Write, 7397376, 4096),
        ],
        2048,
        847872,
    ),
    (
        "[a]\nrw=randread\nbsrange=1k-16k\npercentage_random=50\noffset=25%\nsize=50%\n",
        MIB,
        [(Read, 774144, 3072), (Read, 777216, 6144), (Read, 783360, 2048), (Read, 715776, 16384), (Read, 732160, 3072)],
        66,
        318464,
    ),
];

#[test]
fn requests_are_those_of_fio() {
    for (text, device_bytes, first, count, last) in GOLDENS {
        let requests = all(text, device_bytes);
        let issued: Vec<_> =
            requests.iter().map(|request| (request.operation, request.offset_bytes, request.bytes)).collect();
        assert_eq!(issued[..5], first, "{text}");
        assert_eq!((issued.len(), issued.last().unwrap().1), (count, last), "{text}");
    }
}

/// Offsets of the instances of one job, as fio issues them. Seeds, names and regions differ.
#[test]
fn instances_are_those_of_fio() {
    let text = "[x]\n[job0]\nfilename=dev.bin\nrw=randwrite\nnumjobs=4\nsize=20%\noffset_increment=20%\nnumber_ios=6\n\
                random_distribution=zipf:1.2\n";
    let expected = [
        [0, 176128, 176128, 180224, 163840, 0],
        [671744, 815104, 638976, 802816, 802816, 827392],
        [516096, 540672, 503808, 540672, 540672, 516096],
        [339968, 356352, 229376, 323584, 241664, 253952],
    ];
    let job = &jobs(text)[1];
    for (instance, expected) in expected.into_iter().enumerate() {
        let plan = JobPlan::new(
            job,
            instance as u32,
            WorkloadTarget { device_bytes: MIB, placement_count: 0, ..WorkloadTarget::default() },
        )
        .unwrap();
        let mut requests = Vec::new();
        JobStream::new(plan, 0).fill(&mut requests, 100);
        assert_eq!(offsets(&requests), expected, "instance {instance}");
    }
}

#[test]
fn filling_and_stepping_give_the_same_requests() {
    for text in [
        "rw=write\nbs=12k\nloops=3",
        "rw=write\nbs=128k\nsize=50%\nio_size=3m",
        "rw=randwrite\nloops=3",
        "rw=randwrite\nnorandommap\nnumber_ios=100\nloops=2",
        "rw=randwrite\nbs=4k,8k",
        "rw=randwrite\nbs=8k\nrandom_distribution=zipf:0.9\nio_size=5m",
        "rw=randtrim\nrandom_distribution=zoned:60/10:40/90",
        "rw=randwrite\nfdp=1\nplids=3\ntime_based\nruntime=1",
        "rw=write\nbs=20k\ntime_based\nruntime=1",
        "rw=randwrite\nbs=8k\nrandrepeat=0\nloops=4",
        "rw=randwrite\nbs=8k\nverify=crc32c\nloops=2",
        "rw=randwrite\nverify=crc32c\nnorandommap\nloops=2",
        "rw=write\nverify=crc32c\nverify_backlog=7",
        "rw=randrw\nverify=crc32c\ntime_based\nruntime=1",
    ] {
        let text = format!("[a]\n{text}\n");
        let mut stepping = stream(&text, MIB + 4 * KIB);
        let mut filling = stepping.clone();
        let mut filled = Vec::new();
        for step in 0..200 {
            let wanted = step * 7 % 90 + 1;
            if filling.fill(&mut filled, wanted) < wanted {
                assert_eq!(filling.next(), None);
                break;
            }
        }
        let stepped: Vec<IoRequest> = std::iter::from_fn(|| stepping.next()).take(filled.len()).collect();
        assert_eq!(filled, stepped, "{text}");
        assert!(filled.len() > 20, "{text}");
        assert_eq!(filling.plan().endless, stepping.next().is_some(), "{text}");
    }
}

#[test]
fn a_random_map_covers_each_block_once_per_pass() {
    let text = "[a]\nrw=randwrite\ntime_based\nruntime=1\n";
    let mut stream = stream(text, 1000 * 4 * KIB);
    let mut passes = Vec::new();
    for _ in 0..3 {
        let mut pass = Vec::new();
        stream.fill(&mut pass, 1000);
        let mut covered = offsets(&pass);
        covered.sort_unstable();
        assert_eq!(covered, (0..1000).map(|block| block * 4 * KIB).collect::<Vec<_>>());
        passes.push(offsets(&pass));
    }
    assert_ne!(passes[0], passes[1], "a pass of an endless job goes on drawing");
    assert_ne!(passes[0], (0..1000).map(|block| block * 4 * KIB).collect::<Vec<_>>());
}

#[test]
fn without_a_map_blocks_come_again() {
    let mut drawn = offsets(&all("[a]\nrw=randwrite\nnorandommap\n", 4 * MIB));
    assert_eq!(drawn.len(), 1024);
    drawn.sort_unstable();
    drawn.dedup();
    // The expected number is 1 - 1/e of the blocks.
    assert!((600..700).contains(&drawn.len()), "{} different blocks", drawn.len());
}

#[test]
fn sequential_jobs_end_at_the_region_or_wrap() {
    let once = all("[a]\nrw=write\nbs=64k\noffset=128k\nsize=256k\n", MIB);
    assert_eq!(offsets(&once), [128 * KIB, 192 * KIB, 256 * KIB, 320 * KIB]);
    let mut stream = stream("[a]\nrw=write\nbs=64k\noffset=128k\nsize=256k\ntime_based\nruntime=1\n", MIB);
    let mut wrapped = Vec::new();
    stream.fill(&mut wrapped, 6);
    assert_eq!(offsets(&wrapped)[3..], [320 * KIB, 128 * KIB, 192 * KIB]);
}

#[test]
fn limits_are_in_bytes_requests_and_loops() {
    let total = |options: &str| -> u64 {
        all(&format!("[a]\nrw=randwrite\nbs=8k\nnorandommap\n{options}\n"), MIB)
            .iter()
            .map(|request| u64::from(request.bytes))
            .sum()
    };
    assert_eq!(total(""), MIB);
    assert_eq!(total("loops=3"), 3 * MIB);
    assert_eq!(total("io_size=2m"), 2 * MIB);
    assert_eq!(total("io_size=25%"), MIB / 4);
    assert_eq!(total("size=512k"), MIB / 2);
    assert_eq!(total("number_ios=5"), 40 * KIB);
    assert_eq!(total("number_ios=5\nloops=2"), 80 * KIB);
}

#[test]
fn loops_repeat_their_random_numbers_unless_a_seed_is_given() {
    let halves = |options: &str| {
        let drawn = offsets(&all(&format!("[a]\nrw=randwrite\nloops=2\n{options}"), MIB));
        (drawn[..256].to_vec(), drawn[256..].to_vec())
    };
    let (first, second) = halves("");
    assert_eq!(first, second);
    for options in ["randseed=9\n", "randrepeat=0\n"] {
        let (first, second) = halves(options);
        assert_ne!(first, second, "{options}");
    }
}

#[test]
fn instances_draw_numbers_of_their_own() {
    let job = &jobs("[a]\nrw=randwrite\nnumjobs=2\n")[0];
    let drawn = [0, 1].map(|instance| {
        let plan = JobPlan::new(
            job,
            instance,
            WorkloadTarget { device_bytes: MIB, placement_count: 0, ..WorkloadTarget::default() },
        )
        .unwrap();
        let mut requests = Vec::new();
        JobStream::new(plan, instance as u16).fill(&mut requests, 50);
        offsets(&requests)
    });
    assert_ne!(drawn[0], drawn[1]);
}

#[test]
fn sizes_and_directions_have_their_shares() {
    let requests = all("[a]\nrw=randwrite\nbssplit=4k/50:8k/30:64k/20\nnorandommap\nsize=512m\n", 1 << 30);
    let share = |bytes: u64| {
        let count = requests.iter().filter(|request| u64::from(request.bytes) == bytes).count();
        count as f64 / requests.len() as f64
    };
    for (bytes, expected) in [(4 * KIB, 0.5), (8 * KIB, 0.3), (64 * KIB, 0.2)] {
        assert!((share(bytes) - expected).abs() < 0.01, "{bytes}: {}", share(bytes));
    }
    let requests = all("[a]\nrw=randrw\nrwmixread=30\nnorandommap\n", 256 * MIB);
    let reads = requests.iter().filter(|request| request.operation == RequestOperation::Read).count() as f64
        / requests.len() as f64;
    assert!((reads - 0.3).abs() < 0.01, "{reads} reads");
}

#[test]
fn zoned_writes_go_where_the_zones_are() {
    let hot_share = |distribution: &str, hot_bytes: u64| {
        let requests = all(&format!("[a]\nrw=randwrite\nrandom_distribution={distribution}\n"), 256 * MIB);
        let hot = requests.iter().filter(|request| request.offset_bytes < hot_bytes).count();
        hot as f64 / requests.len() as f64
    };
    let zoned = hot_share("zoned:80/20:20/80", 256 * MIB / 5);
    assert!((zoned - 0.8).abs() < 0.005, "{zoned}");
    let absolute = hot_share("zoned_abs:60/20m:40/100m", 20 * MIB);
    assert!((absolute - 0.6).abs() < 0.005, "{absolute}");
}

#[test]
fn trim_and_write_come_in_pairs() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let requests = all(&format!("[a]\nrw={rw}\nbssplit=4k/50:8k/50\n"), MIB);
        assert!(requests.len() > 100, "{rw}");
        for pair in requests.chunks_exact(2) {
            assert_eq!(
                [pair[0].operation, pair[1].operation],
                [RequestOperation::Trim, RequestOperation::Write],
                "{rw}"
            );
            assert_eq!((pair[0].offset_bytes, pair[0].bytes), (pair[1].offset_bytes, pair[1].bytes), "{rw}");
        }
    }
}

#[test]
fn placement_goes_round_at_random_or_by_address() {
    let placements = |text: &str| all(text, 4 * MIB).iter().map(|request| request.placement).collect::<Vec<_>>();
    let in_turn = placements("[a]\nrw=write\nfdp=1\nplids=1,4-5\nnumber_ios=7\n");
    assert_eq!(in_turn, [1, 4, 5, 1, 4, 5, 1].map(PlacementIndex).map(Some));
    let unlisted = placements("[a]\nrw=write\ndataplacement=fdp\nnumber_ios=9\n");
    assert_eq!(unlisted, [0, 1, 2, 3, 4, 5, 6, 7, 0].map(PlacementIndex).map(Some), "all that the drive offers");
    let random = placements("[a]\nrw=write\nfdp=1\nplids=0,7\nplid_select=random\n");
    let sevens = random.iter().filter(|placement| **placement == Some(PlacementIndex(7))).count();
    assert!((450..575).contains(&sevens), "{sevens} of 1024");
    assert!(placements("[a]\nrw=read\nfdp=1\nplids=3\n").iter().all(Option::is_none));
    assert!(placements("[a]\nrw=write\nplids=3\n").iter().all(Option::is_none));
}

#[test]
fn a_scheme_places_by_the_first_byte() {
    let mut job = jobs("[a]\nrw=write\nfdp=1\nnumber_ios=4\n").remove(0);
    job.plid_select = super::super::PlacementSelection::Scheme;
    job.dp_scheme = vec![
        SchemeEntry { start_bytes: 4 * KIB, end_bytes: 8 * KIB, index: PlacementIndex(5) },
        SchemeEntry { start_bytes: 0, end_bytes: 12 * KIB, index: PlacementIndex(2) },
    ];
    let plan =
        JobPlan::new(&job, 0, WorkloadTarget { device_bytes: MIB, placement_count: 8, ..WorkloadTarget::default() })
            .unwrap();
    let mut requests = Vec::new();
    JobStream::new(plan, 0).fill(&mut requests, 10);
    assert_eq!(
        requests.iter().map(|request| request.placement).collect::<Vec<_>>(),
        [2, 5, 2, 0].map(PlacementIndex).map(Some)
    );
}

#[test]
fn a_drive_without_fdp_ignores_directives_and_one_with_it_checks_them() {
    let job = &jobs("[a]\nrw=write\nfdp=1\nplids=9\n")[0];
    let without =
        JobPlan::new(job, 0, WorkloadTarget { device_bytes: MIB, placement_count: 0, ..WorkloadTarget::default() })
            .unwrap();
    assert_eq!(JobStream::new(without, 0).next().unwrap().placement, None);
    let error =
        JobPlan::new(job, 0, WorkloadTarget { device_bytes: MIB, placement_count: 8, ..WorkloadTarget::default() })
            .unwrap_err()
            .to_string();
    assert!(error.starts_with("test.fio:4: in plids of [a], the drive has 8"), "{error}");
}

#[test]
fn regions_that_do_not_fit_are_refused() {
    for (options, part) in [
        ("size=2m", "exceed the drive's"),
        ("offset=1m", "starts at"),
        ("bs=64k\nsize=8k", "less than one block"),
        ("bssplit=4k/50:8k/50\nbsrange=16k-64k", "below the smallest request, 16384 bytes"),
        ("rw=randwrite\nrandom_distribution=zoned_abs:50/1m:50/1m", "the zones of"),
    ] {
        let job = &jobs(&format!("[a]\n{options}\n"))[0];
        let error =
            JobPlan::new(job, 0, WorkloadTarget { device_bytes: MIB, placement_count: 0, ..WorkloadTarget::default() })
                .unwrap_err()
                .to_string();
        assert!(error.contains(part) && error.starts_with("test.fio:"), "{options}: {error}");
    }
}

#[test]
fn more_blocks_than_32_bits_can_name_are_all_reached() {
    let mut stream = stream("[a]\nrw=randwrite\nbs=512\nnorandommap\n", 1 << 45);
    assert!(stream.plan().offsets_64);
    let odd = (0..1000).filter(|_| stream.next().unwrap().offset_bytes / 512 % 2 == 1).count();
    assert!((430..570).contains(&odd), "{odd} of 1000 blocks are odd: the low bits are not drawn");
}

/// `tests/real_fio` compares these reads with those of fio.
#[test]
fn what_a_pass_has_written_is_read_back() {
    let halves = |options: &str| {
        let requests = all(&format!("[a]\nrw=randwrite\nverify=crc32c\n{options}"), MIB);
        let reads: Vec<IoRequest> = requests.iter().filter(|one| one.operation == Read).copied().collect();
        (offsets(&requests), offsets(&reads))
    };
    let (both, reads) = halves("");
    assert_eq!((&both[..256], &both[256..]), (&reads[..], &reads[..]));
    let (both, reads) = halves("norandommap\n");
    let mut distinct = both[..256].to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(reads, distinct, "sorted, and once what was overwritten");
    assert!(halves("do_verify=0\n").1.is_empty());
    let mut endless = stream("[a]\nrw=write\nverify=crc32c\ntime_based\nruntime=1\n", MIB);
    let mut requests = Vec::new();
    endless.fill(&mut requests, 1024);
    let kinds: Vec<RequestOperation> =
        requests.chunk_by(|a, b| a.operation == b.operation).map(|run| run[0].operation).collect();
    assert_eq!(kinds, [Write, Read, Write, Read], "a pass ends although the job does not");
}

#[test]
fn an_address_is_drawn_for_each_so_many_requests() {
    let text = |modifier: &str| format!("[a]\nrw=randwrite{modifier}\nnorandommap\nnumber_ios=12\n");
    let drawn = offsets(&all(&text(""), 64 * MIB));
    let runs = offsets(&all(&text(":4"), 64 * MIB));
    for (run, draw) in runs.chunks(4).zip(&drawn) {
        let expected: Vec<u64> = (0..4).map(|step| draw + step * 4 * KIB).collect();
        assert_eq!(run, expected);
    }
    let same = offsets(&all(&format!("{}rw_sequencer=identical\n", text(":4")), 64 * MIB));
    assert_eq!(same, [[drawn[0]; 4], [drawn[1]; 4], [drawn[2]; 4]].concat());
}

/// Offsets and lengths in KiB, as fio 3.42 fills them in with an engine that takes several ranges.
#[test]
fn ranges_of_a_trim_are_those_of_fio() {
    let pieces = |text: &str| {
        let requests = all(text, 4000 * KIB);
        let piece = |request: &IoRequest| format!("{}:{}", request.offset_bytes / KIB, u64::from(request.bytes) / KIB);
        requests.iter().map(piece).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        pieces("[a]\nrw=randtrim\nio_size=500k\nnum_range=8\nnorandommap\nbssplit=4k/10:64k/50:32k/40\n"),
        "3908:32 3460:64 2624:64 2064:32 2408:64 3908:64 56:64 904:32 1308:64 3344:64 2696:64 2260:64 3804:64 1528:64 48:4 \
         2988:32",
        "a trim that has begun is completed"
    );
    assert_eq!(
        pieces("[a]\nrw=trim\nio_size=400k\nnum_range=8\nbssplit=4k/10:64k/50:32k/40\n"),
        "0:32 32:64 96:64 160:32 192:64 256:64 320:64 384:32"
    );
    assert_eq!(
        pieces("[a]\nrw=randtrim\nnum_range=4\nnumber_ios=5\nbssplit=4k/50:16k/50\n"),
        "3908:4 3460:16 2624:16 2064:4 2408:16 3912:16 56:16 904:4 1308:16 3344:16 2696:16 2260:16 3804:16 1528:16 48:4 \
         2988:4 3200:4 1956:16 3080:4 2388:4",
        "a trim counts as one, and its ranges are not shortened by the map"
    );
    let pass = "36:4 32:4 24:4 20:4 28:4 0:4 4:4 8:4 12:4 16:4";
    assert_eq!(
        pieces("[a]\nrw=randtrim\nsize=40k\nnum_range=4\nloops=2\n"),
        format!("{pass} {pass}"),
        "the last trim of a pass has two ranges"
    );
}

/// The expected sequences are those of fio 3.42.
#[test]
fn sequences_of_blocks_are_those_of_fio() {
    let blocks = |options: &str| {
        let text = format!("[a]\nbs=4k\nsize=48k\nrandom_distribution=sequence:2,0,1\n{options}");
        let requests = all(&text, MIB);
        let block = |request: &IoRequest| format!("{:?}{}", request.operation, request.offset_bytes / 4096);
        requests.iter().map(block).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(blocks("rw=randread\nio_size=24k\n"), "Read2 Read0 Read1 Read2 Read0 Read1");
    assert_eq!(
        blocks("rw=randread\nrandom_sequence_stride=1\n"),
        "Read2 Read0 Read1 Read5 Read3 Read4 Read8 Read6 Read7 Read11 Read9 Read10"
    );
    assert_eq!(
        blocks("rw=randrw\nloops=2\nrandom_sequence_stride=1\n"),
        "Read2 Read0 Read1 Write2 Read5 Read3 Write0 Write1 Write5 Read4 Write3 Read8 Read6 Read7 Read11 Write4 Read9 Read10 \
         Write8 Write6 Write7"
    );
}

/// The delays in microseconds are those of fio 3.42.
#[test]
fn each_instance_draws_its_delay() {
    let delays = |range: &str| {
        let text =
            format!("[g]\nnumjobs=3\nstartdelay={range}\n[h]\nstartdelay={range}\nrandom_generator=tausworthe64\n");
        let target = WorkloadTarget { device_bytes: MIB, ..WorkloadTarget::default() };
        let jobs = jobs(&text);
        let delays = jobs.iter().flat_map(|job| {
            (0..job.numjobs).map(move |instance| JobPlan::new(job, instance, target).expect("it fits").delay_us)
        });
        delays.collect::<Vec<_>>()
    };
    assert_eq!(delays("1ms-500ms"), [335_107, 44_800, 280_191, 297_484]);
    assert_eq!(delays("100ms,900ms"), [635_642, 170_221, 547_600, 575_324]);
    assert_eq!(delays("0-1"), [669_552, 698_557, 854_438, 594_155], "others begin at the first one's");
    assert_eq!(delays("5ms"), [5_000; 4]);
}

#[test]
fn other_commands_take_the_place_of_writes() {
    let text = |mode: &str| format!("[a]\nrw=write\nsize=4m\n{mode}\n");
    let counts = |mode: &str| {
        let requests = all(&text(mode), 4 * MIB);
        RequestOperation::ALL.map(|operation| requests.iter().filter(|request| request.operation == operation).count())
    };
    assert_eq!(counts("write_mode=write"), [0, 1024, 0]);
    assert_eq!(counts("write_mode=zeroes"), [0, 1024, 0]);
    assert_eq!(counts("write_mode=zeroes\ndeac=1"), [0, 0, 1024]);
    assert_eq!(counts("write_mode=verify"), [1024, 0, 0]);
    assert_eq!(counts("sg_write_mode=verify_bytchk_01"), [1024, 0, 0]);
    let [reads, writes, trims] = counts("write_mode=write/40:zeroes/30:uncor/20:verify/10\ndeac=1");
    assert!(
        (370..450).contains(&writes) && (270..345).contains(&trims) && (75..130).contains(&reads),
        "{reads} {writes} {trims}"
    );
    assert!((780..860).contains(&(reads + writes + trims)), "a fifth is no request");
    let placed = all(&text("write_mode=write/50:verify/\nfdp=1\nplids=3"), 4 * MIB);
    assert!(placed.iter().all(|request| request.placement.is_some() == (request.operation == Write)));
    // The seed of the choice is the one that fio prints with --debug=random.
    let seeds = JobPlan::new(
        &jobs("[a]\nrandseed=7\n")[0],
        0,
        WorkloadTarget { device_bytes: MIB, ..WorkloadTarget::default() },
    );
    assert_eq!(seeds.expect("it fits").seeds.seed(Purpose::WriteMode), 1_470_897_371_723_005_982);
}
