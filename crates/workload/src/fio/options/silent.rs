//! Options that are legal and have no effect in the lab, so that the same file runs under real fio.

use super::{Effect, FioOption, OptionKind};
use crate::fio::error::OptionError;
use crate::fio::value::switch;

/// Prefix of the reason of options that would have an effect on a drive with timing.
pub(super) const PRETENDED: &str = "not modelled. ";

/// Reasons for having no effect, with the options of each in the order of the manual. An alias
/// follows `=`.
const OPTIONS_BY_REASON: &[(&str, &str)] = &[
    ("labels reports. The section's name is the job's name", "description name group_reporting new_group"),
    (
        "selects the file that real fio opens or creates. The lab's target is always the whole model",
        "filetype directory filename_format unique_filename lockfile fallocate fadvise_hint overwrite \
         create_serialize create_fsync create_on_open allow_file_create allow_mounted_write pre_read invalidate \
         unlink unlink_each_loop",
    ),
    ("refines nrfiles or a file system. The target is one device", "openfiles"),
    (
        "selects how real fio submits requests to the kernel or the driver. The lab calls the model",
        "direct buffered atomic io_submit_mode cmd_type fixedbufs registerfiles sqthread_poll sqthread_poll_cpu hipri hipri_percentage \
         nonvectored uncached nowait force_async readfua writefua read_mode userspace_reap libaio_vectored \
         xnvme_async xnvme_sync xnvme_admin xnvme_be xnvme_mem xnvme_iovec xnvme_dev_nsid xnvme_dev_subnqn \
         mem_size_mb shm_id enable_sgl sge_size disable_pcie_sgl_merge hostnqn digest_enable enable_vmd \
         print_qid_mappings log_flags prio prioclass priohint cmdprio_percentage cmdprio_class cmdprio cmdprio_hint \
         cmdprio_bssplit ioscheduler write_hint cdb_len verify_mode verify_bytchk stream_id busy_poll",
    ),
    (
        "configures an engine of real fio or its target",
        "spdk_conf spdk_json_conf spdk_mem spdk_single_seg spdk_rpc_listen_addr spdk_tracing env_context enable_wrr \
         enable_interrupts arbitration_burst low_weight medium_weight high_weight wrr_priority bit_bucket_data_len \
         clustername clientname pool rbdname rbd_encryption_format rbd_encryption_passphrase conf touch_objects uri \
         libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size \
         libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim libblkio_wait_mode \
         libblkio_force_enable_completion_eventfd skip_bad initiator gpu_dev_ids cuda_io rocm_io volume brick \
         single-instance=single_instance nfs_url namenode hdfsdirectory chunk_size=chunck_size hdfs_use_direct cont \
         object_class svcl gflags",
    ),
    (
        "belongs to engines without I/O to a drive, which are refused",
        "hostname port protocol=proto nodelay listen pingpong interface ttl window_size mss bindname verb cpuload \
         cpumode cpuchunks exit_on_io_done program arguments grace_time std_redirect donorname inplace stat_type https \
         http_host http_user http_pass http_s3_key http_s3_keyid http_s3_security_token http_swift_auth_token \
         http_s3_region http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class http_mode \
         http_verbose http_object_mode",
    ),
    ("belongs to a profile of fio, which is refused", "threads"),
    (
        "selects protection information or metadata, which the model does not have",
        "md_per_io_size pi_act pi_chk apptag apptag_mask",
    ),
    (
        "configures the processes of real fio",
        "thread nice comm cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy gpu_dev_id cgroup \
         cgroup_nodelete cgroup_weight uid gid exec_prerun exec_postrun clocksource gtod_cpu",
    ),
    ("selects the memory of fio's buffers", "mem=iomem iomem_align=mem_align hugepage-size lockmem"),
    ("has no effect, because a random map that does not fit is refused", "softrandommap"),
    (
        "selects the data, which the lab does not store",
        "zero_buffers refill_buffers scramble_buffers buffer_pattern buffer_compress_percentage \
         buffer_compress_chunk dedupe_percentage dedupe_global dedupe_mode dedupe_working_set_percentage",
    ),
    (
        "configures how verify compares data or stores its state. The lab only issues its reads",
        "verify_policy verifysort verifysort_nr verify_interval verify_offset verify_pattern_interval \
         verify_fatal verify_dump verify_async verify_async_cpus \
         verify_state_load verify_state_save verify_write_sequence verify_header_seed trim_verify_zero trim_backlog \
         trim_backlog_batch",
    ),
    (
        "not modelled. Each request is submitted as soon as another completes or it is due",
        "iodepth_batch=iodepth_batch_submit iodepth_batch_complete_min=iodepth_batch_complete \
         iodepth_batch_complete_max iodepth_low serialize_overlap",
    ),
    (
        "not modelled. The model's completed writes survive a power loss without flushes and barriers",
        "fsync fdatasync write_barrier sync_file_range sync end_fsync fsync_on_close end_syncfs",
    ),
    (
        "sets a limit that only stops or reports a run of real fio",
        "ramp_size max_latency rate_min=ratemin rate_iops_min",
    ),
    (
        "sets the precision of a rate or a flow, which is exact in the lab",
        "rate_cycle=ratecycle flow_sleep flow_watermark",
    ),
    ("not modelled. It selects how fio pauses, and which requests it counts", "thinktime_spin thinktime_blocks_type"),
    (
        "refines steadystate, which means `--steady-state`",
        "steadystate_duration=ss_dur steadystate_ramp_time=ss_ramp steadystate_check_interval=ss_interval",
    ),
    (
        "selects the behaviour after an error. The model has no error after which a job can continue",
        "continue_on_error ignore_error error_dump exitall_on_error",
    ),
    (
        "refines read_iolog, which is refused",
        "read_iolog_chunked replay_no_stall replay_redirect replay_scale replay_align replay_time_scale replay_skip \
         merge_blktrace_scalars merge_blktrace_iters",
    ),
    (
        "refines zonemode=zbd, which is refused",
        "zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits \
         zone_reset_threshold zone_reset_frequency recover_zbd_write_error write_zone_remainder initial_zone_reset \
         zone_append",
    ),
    (
        "selects what fio measures, logs and prints. The lab has its own reports",
        "write_iolog write_hist_log log_entries log_hist_msec log_hist_coarseness log_window_value=log_max_value log_prio log_issue_time \
         log_compression log_compression_cpus log_store_compressed log_alternate_epoch=log_unix_epoch \
         log_alternate_epoch_clock_id block_error_percentiles bwavgtime iopsavgtime stats clat_percentiles \
         lat_percentiles slat_percentiles percentile_list significant_figures disk_util gtod_reduce disable_lat \
         disable_clat disable_slat disable_bw_measurement=disable_bw job_start_clock_id unified_rw_reporting \
         unit_base",
    ),
];

/// Refused engines, which do no I/O to a drive, with the reason.
const REFUSED_ENGINES: &[(&str, &str)] = &[
    ("net netsplice rdma", "sends data to another process instead of a drive"),
    ("cpuio exec", "does no I/O, but uses the processor or starts a program"),
    ("page_fault", "accesses memory instead of a drive"),
    ("http", "reads and writes the objects of a web server"),
    (
        "filecreate filestat filedelete dircreate dirstat dirdelete falloc ftruncate e4defrag",
        "performs file system operations, which a drive does not have",
    ),
];

/// Options without effect of which some values are refused.
static CHECKED: &[FioOption] = &[
    FioOption {
        names: "ioengine",
        kind: OptionKind::Text,
        help: "selects the engine of real fio. Engines without I/O to a drive, such as net, cpuio and filecreate, \
               are refused",
        effect: Effect::Checked(|engine| {
            let refused = REFUSED_ENGINES.iter().find(|(names, _)| names.split_whitespace().any(|name| name == engine));
            match refused {
                None => Ok(()),
                Some((_, why)) => Err(OptionError::new(
                    format!("the engine {engine} {why}"),
                    "Remove the job, or describe its requests to a drive in a job with another engine",
                )),
            }
        }),
    },
    FioOption {
        names: "fill_device fill_fs",
        kind: OptionKind::Flag,
        help: "is the default without `size`. It is refused with `size`, and in random jobs that repeat blocks, \
               because they never fill the drive",
        effect: Effect::Checked(|value| switch(value).map(|_| ())),
    },
];

/// All options without effect.
pub(super) fn options() -> impl Iterator<Item = FioOption> {
    let of_reason = |&(help, options): &(&'static str, &'static str)| {
        // The values are not parsed, so the kind has no meaning.
        let silent = move |names| FioOption { names, kind: OptionKind::Flag, help, effect: Effect::None };
        options.split_whitespace().map(silent)
    };
    CHECKED.iter().copied().chain(OPTIONS_BY_REASON.iter().flat_map(of_reason))
}
