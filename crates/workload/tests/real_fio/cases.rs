//! The small job files that are compared with real fio, each for one or two options.
//!
//! The target is called `dev.bin` if a percentage needs its size. Else each instance has its own
//! file, whose name appears in fio's log. Each job file follows a `[global]` section with
//! `ioengine=libaio`, because a synchronous engine draws one more address at the end of a pass. fio
//! trims no files, so jobs that trim have a null target.

/// Size of the target.
pub const DEVICE_BYTES: u64 = 8 << 20;

/// Environment variables of the job files.
pub const VARIABLES: [(&str, &str); 2] = [("WARP_TEST_BLOCK", "8"), ("WARP_TEST_RW", "randwrite")];

/// Contents of `common.fio`, which job files include.
pub const INCLUDED: &str = "bs=8k ; as of the first\nsize=256k\nrwmixread=30\n";

/// A job file and the option that it tests.
pub struct Case {
    /// The tested options.
    pub option: &'static str,
    /// Text of the job file.
    pub text: &'static str,
}

macro_rules! cases {
    ($($option:literal $text:literal)*) => {
        /// All cases, in the order of the manual's table.
        pub const CASES: &[Case] = &[$(Case { option: $option, text: $text }),*];
    };
}

cases! {
    "rw=read" "[a]\nrw=read\nsize=256k"
    "rw=write" "[a]\nrw=write\nbs=16k\nsize=1m"
    "rw=trim" "[a]\nioengine=null\nrw=trim\nsize=256k"
    "rw=randread" "[a]\nrw=randread\nsize=1m"
    "rw=randwrite" "[a]\nrw=randwrite\nsize=1m"
    "rw=randtrim" "[a]\nioengine=null\nrw=randtrim\nsize=1m"
    "rw=rw" "[a]\nrw=rw\nsize=1m"
    "rw=randrw" "[a]\nrw=randrw\nsize=1m"
    "rw=trimwrite" "[a]\nioengine=null\nrw=trimwrite\nsize=512k"
    "rw=randtrimwrite" "[a]\nioengine=null\nrw=randtrimwrite\nsize=512k\nbssplit=4k/50:8k/50"
    "rw=randwrite:8" "[a]\nfilename=dev.bin\nrw=randwrite:8\nsize=8m"
    "rw=randwrite:8 size" "[a]\nfilename=dev.bin\nrw=randwrite:8\nsize=1m"
    "rw=randrw:8" "[a]\nfilename=dev.bin\nrw=randrw:8\nsize=100%"
    "rw=randread:4 rw_sequencer=identical" "[a]\nrw=randread:4\nrw_sequencer=identical\nsize=1m"
    "rw=randrw:3 rw_sequencer=identical norandommap" "[a]\nrw=randrw:3\nrw_sequencer=identical\nsize=1m\nnorandommap"
    "rw=randwrite:4 bssplit" "[a]\nrw=randwrite:4\nsize=1m\nbssplit=4k/50:8k/50"
    "bs=8k,4k" "[a]\nrw=randrw\nbs=8k,4k\nsize=1m\nnorandommap"
    "bsrange" "[a]\nrw=randwrite\nbsrange=4k-32k\nsize=2m"
    "bssplit" "[a]\nrw=randwrite\nbssplit=4k/60:16k/30:64k/10\nsize=2m"
    "bssplit=,LIST" "[a]\nrw=randrw\nbssplit=4k/50:8k/50,4k/90:16k/10\nsize=2m\nnorandommap"
    "bssplit=,LIST of one direction" "[a]\nrw=randrw\nbs=16k\nbssplit=,4k/50:8k/50\nsize=2m\nnorandommap"
    "bssplit=LIST," "[a]\nrw=randrw\nbs=16k\nbssplit=4k/50:8k/50,\nsize=2m\nnorandommap"
    "bssplit=LIST,,LIST" "[a]\nioengine=null\nrw=trimwrite\nbs=16k\nbssplit=4k/50:8k/50,,16k/30:32k/70\nsize=2m"
    "bssplit=LIST,, after another" "[global]\nbssplit=,4k/30:16k/70\n[a]\nrw=randrw\nbs=16k\nbssplit=8k/50:32k/50,,\nsize=2m\nnorandommap"
    "bssplit=,,LIST rw=randtrim" "[a]\nioengine=null\nrw=randtrim\nbs=16k\nbssplit=,,4k/50:8k/50\nsize=2m"
    "bssplit below 100" "[a]\nrw=randwrite\nbssplit=4k/30:16k/20:64k/10\nsize=4m\nnorandommap"
    "bssplit above 100" "[a]\nrw=randwrite\nbssplit=4k/60:16k/30:64k/50\nsize=4m\nnorandommap"
    "bssplit=20k-28k/5." "[a]\nrw=write\nbssplit=4k/45:20k-28k/5.:32k-60k/50:\nsize=4m"
    "bs=4096B" "[a]\nrw=randwrite\nbs=4096B\nsize=1048576b"
    "rw=read:-8k" "[a]\nfilename=dev.bin\nrw=read:-8k\nsize=100%"
    "rw=write:4k" "[a]\nfilename=dev.bin\nrw=write:4k\nsize=1m"
    "rw=write:16k offset size" "[a]\nfilename=dev.bin\nrw=write:16k\nbs=8k\noffset=1m\nsize=4m\nnumber_ios=500"
    "rw=read:-16k offset size" "[a]\nfilename=dev.bin\nrw=read:-16k\nbs=8k\noffset=1m\nsize=4m\nnumber_ios=300"
    "rw=rw:-8k loops" "[a]\nfilename=dev.bin\nrw=rw:-8k\nsize=8m\nloops=2\nnumber_ios=700"
    "rw=write:112k verify" "[a]\nfilename=dev.bin\nrw=write:112k\nbs=16k\noffset=120k\nsize=6m\nio_size=2m\nverify=null"
    "bs=4k-16k" "[a]\nrw=randrw\nbs=4k-16k\nsize=2m\nnorandommap"
    "zonemode=strided zoneskip" "[a]\nfilename=dev.bin\nrw=read\nbs=64k\nzonemode=strided\nzonesize=256k\nzoneskip=1m\nsize=8m"
    "zonesize offset bssplit loops" "[a]\nfilename=dev.bin\nrw=write\nbssplit=4k/50:16k/50\nzonemode=strided\nzonesize=100k\nzoneskip=300k\noffset=1m\nsize=4m\nio_size=2m\nloops=2"
    "zonesize rw=randwrite" "[a]\nfilename=dev.bin\nrw=randwrite\nzonemode=strided\nzonesize=256k\nzoneskip=512k\nsize=8m\nio_size=3m"
    "zonesize zonerange rw=randrw norandommap" "[a]\nfilename=dev.bin\nrw=randrw\nbs=8k\nzonemode=strided\nzonesize=1m\nzonerange=256k\nzoneskip=512k\nsize=8m\nnorandommap"
    "zonesize zonerange rw=randwrite" "[a]\nfilename=dev.bin\nrw=randwrite\nzonemode=strided\nzonesize=512k\nzonerange=128k\nsize=8m\nio_size=2m"
    "zonesize smaller than zonerange rw=write" "[a]\nfilename=dev.bin\nrw=write\nbs=8k\nzonemode=strided\nzonesize=64k\nzonerange=256k\nsize=8m\nio_size=4m"
    "filesize" "[a]\nfilename=dev.bin\nrw=randwrite\nfilesize=4m\nsize=1m"
    "filesize offset, no size" "[a]\nfilename=dev.bin\nrw=write\nbs=8k\nfilesize=4m\noffset=1m"
    "filesize size=50% loops" "[a]\nfilename=dev.bin\nrw=randrw\nfilesize=4m\noffset=1m\nsize=50%\nloops=2"
    "blockalign" "[a]\nrw=randwrite\nbs=4k\nba=16k\nsize=1m"
    "size=50% offset=25%" "[a]\nfilename=dev.bin\nrw=randwrite\noffset=25%\nsize=50%"
    "offset_align" "[a]\nfilename=dev.bin\nrw=write\nbs=64k\noffset=33%\noffset_align=128k\nsize=1m"
    "offset_increment numjobs" "[a]\nrw=randwrite\nnumjobs=3\nsize=256k\noffset_increment=256k"
    "io_size smaller than size" "[a]\nrw=randwrite\nsize=1m\nio_size=256k"
    "io_size larger than size" "[a]\nrw=write\nsize=256k\nio_size=1m"
    "io_size larger than size, random" "[a]\nrw=randwrite\nsize=256k\nio_size=1m"
    "io_size norandommap" "[a]\nrw=randwrite\nsize=256k\nio_size=1m\nnorandommap"
    "number_ios" "[a]\nrw=randwrite\nsize=1m\nnumber_ios=77"
    "number_ios loops" "[a]\nrw=randwrite\nsize=1m\nnumber_ios=50\nloops=3"
    "number_ios rw=randtrimwrite" "[a]\nioengine=null\nrw=randtrimwrite\nsize=1m\nnumber_ios=50"
    "loops" "[a]\nrw=randwrite\nsize=256k\nloops=3"
    "loops randseed" "[a]\nrw=randwrite\nsize=256k\nloops=3\nrandseed=7"
    "numjobs" "[a]\nrw=randrw\nsize=256k\nnumjobs=4"
    "several jobs" "[a]\nrw=randwrite\nsize=256k\n[b]\nrw=randread\nsize=256k\n[c]\nstonewall\nrw=randrw\nsize=256k"
    "random_distribution=zipf" "[a]\nrw=randwrite\nrandom_distribution=zipf:1.2\nsize=4m"
    "random_distribution=zipf:theta:center" "[a]\nrw=randwrite\nrandom_distribution=zipf:0.8:0.3\nsize=4m"
    "random_distribution=pareto" "[a]\nrw=randread\nrandom_distribution=pareto:0.2\nsize=4m"
    "random_distribution=normal" "[a]\nrw=randwrite\nrandom_distribution=normal:20\nsize=4m"
    "random_distribution=zoned" "[a]\nrw=randwrite\nrandom_distribution=zoned:60/10:30/20:10/70\nsize=4m"
    "random_distribution=zoned_abs" "[a]\nrw=randwrite\nrandom_distribution=zoned_abs:60/1m:40/3m\nsize=4m"
    "random_distribution=zipf:0" "[a]\nrw=randwrite\nrandom_distribution=zipf:0\nsize=4m"
    "random_distribution=zoned:,ZONES" "[a]\nrw=randrw\nrandom_distribution=zoned:,60/10:40/90\nsize=4m"
    "random_distribution=zoned:ZONES," "[a]\nrw=randrw\nrandom_distribution=zoned:60/10:40/90,\nsize=4m"
    "random_distribution=zoned_abs:,ZONES" "[a]\nrw=randrw\nrandom_distribution=zoned_abs:,60/1m:40/3m\nsize=4m"
    "random_distribution=zoned after another" "[global]\nrandom_distribution=zoned:60/10:40/90\n[a]\nrw=randrw\nrandom_distribution=zoned:,20/50:80/50\nsize=4m"
    "random_generator=tausworthe64" "[a]\nrw=randrw\nrandom_generator=tausworthe64\nsize=1m"
    "randseed" "[a]\nrw=randrw\nrandseed=1234567\nsize=1m"
    "norandommap" "[a]\nrw=randwrite\nnorandommap\nsize=1m"
    "percentage_random" "[a]\nrw=randrw\npercentage_random=30,60\nsize=1m"
    "percentage_random=0" "[a]\nrw=randwrite\npercentage_random=0\nsize=512k"
    "rwmixread=70" "[a]\nrw=randrw\nrwmixread=70\nsize=1m"
    "rwmixread in a job that does not mix" "[a]\nrw=randwrite\nrwmixread=70\nsize=1m"
    "time_based without runtime" "[a]\nrw=randwrite\ntime_based\nsize=1m"
    "rwmixwrite=90" "[a]\nrw=rw\nrwmixwrite=90\nsize=1m"
    "kb_base=1000" "[a]\nrw=randwrite\nkb_base=1000\nbs=4kib\nsize=1mib"
    "${VARIABLE}" "[a]\nrw=${WARP_TEST_RW}\nbs=${WARP_TEST_BLOCK}k\nsize=1m"
    "include" "[a]\nrw=randwrite\nbs=4k\ninclude common.fio\n[global]\ninclude common.fio\nnorandommap\n[b]\nrw=randrw\nbs=4k"
    "iodepth" "[a]\nrw=randrw\niodepth=8\nsize=1m"
    "thinktime thinktime_blocks" "[a]\nrw=randwrite\nthinktime=10\nthinktime_blocks=16\nsize=256k"
    "rate" "[a]\nrw=randwrite\nrate=20m\nsize=256k"
    "startdelay rate_ignore_thinktime" "[a]\nrw=randwrite\nsize=256k\nthinktime=10\nrate=20m\nrate_ignore_thinktime=1\nstartdelay=100ms"
    "startdelay=1-2" "[a]\nrw=randwrite\nsize=256k\nstartdelay=1ms-20ms\nnumjobs=2"
    "flow flow_id" "[a]\nrw=randwrite\nsize=256k\nflow=2\nflow_id=1\n[b]\nrw=randread\nsize=128k\nflow=1\nflow_id=1"
    "wait_for" "[a]\nrw=randwrite\nsize=256k\n[b]\nwait_for=a\nrw=randread\nsize=256k"
    "thinktime_iotime" "[a]\nrw=randwrite\nsize=256k\nthinktime=1ms\nthinktime_iotime=1ms"
    "fsync end_fsync" "[a]\nrw=randwrite\nsize=256k\nfsync=8\nend_fsync=1"
    "iodepth_batch iodepth_low" "[a]\nrw=randwrite\nsize=1m\niodepth=16\niodepth_batch=4\niodepth_low=8"
    "rate_iops rate_process=poisson" "[a]\nrw=randread\nrate_iops=4000\nrate_process=poisson\nsize=256k"
    "verify" "[a]\nrw=randwrite\nverify=crc32c\nsize=1m"
    "verify rw=randrw" "[a]\nrw=randrw\nverify=null\nsize=1m\nbssplit=4k/50:8k/50"
    "verify rw=write loops" "[a]\nrw=write\nbs=16k\nverify=md5\nsize=512k\nloops=2"
    "verify norandommap" "[a]\nrw=randwrite\nverify=null\nnorandommap\nsize=1m"
    "verify norandommap bssplit" "[a]\nrw=randwrite\nverify=null\nnorandommap\nbssplit=4k/50:8k/50\nsize=1m"
    "verify random_distribution=zipf loops" "[a]\nrw=randwrite\nverify=null\nrandom_distribution=zipf:1.1\nsize=1m\nloops=2"
    "verify norandommap io_size" "[a]\nrw=randwrite\nverify=null\nnorandommap\nsize=256k\nio_size=1m"
    "verify number_ios loops" "[a]\nrw=randwrite\nverify=null\nsize=256k\nnumber_ios=60\nloops=3"
    "verify rw=randwrite:4" "[a]\nfilename=dev.bin\nrw=randwrite:4\nverify=null\nsize=8m\nnumber_ios=100"
    "verify rw=randread" "[a]\nrw=randread\nverify=null\nsize=256k"
    "verify bsrange" "[a]\nrw=randwrite\nverify=null\nbsrange=4k-32k\nsize=1m"
    "verify_pattern" "[a]\nrw=randwrite\nverify_pattern=0xdeadbeef\nsize=256k"
    "do_verify=0" "[a]\nrw=randwrite\nverify=crc32c\ndo_verify=0\nsize=256k"
    "verify_backlog" "[a]\nrw=randwrite\nverify=null\nverify_backlog=16\nsize=1m"
    "verify_backlog verify_backlog_batch" "[a]\nrw=randwrite\nverify=null\nverify_backlog=16\nverify_backlog_batch=4\nsize=1m"
    "verify_backlog norandommap" "[a]\nrw=randwrite\nverify=null\nverify_backlog=16\nnorandommap\nsize=1m"
    "verify_backlog rw=randrw" "[a]\nrw=randrw\nverify=null\nverify_backlog=8\nsize=1m"
    "verify_backlog loops" "[a]\nrw=write\nverify=null\nverify_backlog=10\nsize=256k\nloops=2"
    "verify_backlog do_verify=0 loops" "[a]\nfilename=dev.bin\nrw=rw\nbs=4k,16k\nsize=700k\nloops=3\nnumber_ios=100\nrandseed=601892\nverify=null\nverify_backlog=50\ndo_verify=0"
    "verify percentage_random bssplit" "[a]\nfilename=dev.bin\nrw=randwrite\nbssplit=4k/50:8k/50,4k/90:16k/10\nsize=1000k\nnorandommap\nrandseed=680663\npercentage_random=50\nverify=null"
    "verify_backlog norandommap loops" "[a]\nfilename=dev.bin\nrw=rw\nbs=8k\nsize=1m\nnorandommap\nloops=3\nrandom_generator=tausworthe64\nverify=null\nverify_backlog=50"
    "verify_backlog rw=randrw:5" "[a]\nfilename=dev.bin\nrw=randrw:5\nsize=256k\nrandom_distribution=zipf:1.2\nloops=2\npercentage_random=30,80\nrwmixread=95\nverify=null\nverify_backlog=16"
}
