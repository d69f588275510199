# shellcheck shell=dash
# The other logs of the Datacenter NVMe SSD Specification, decoded by nvme-cli.

transport=${TRANSPORTS%% *}
admin=$(admin_device "$transport")
device=$(block_device "$transport" 1)

# `ocp_value LOG NAME` prints a number from nvme-cli's output of a log.
ocp_value() {
    sed -n "s/^ *$2[[:space:]]*:*[[:space:]]*//p" "$SCRATCH/ocp-$1" | head -n 1
}

for log in error-recovery-log device-capability-log latency-monitor-log; do
    succeeds "nvme ocp $log" nvme ocp "$log" "$admin"
    cp "$SCRATCH/output" "$SCRATCH/ocp-$log"
done
same "no panic" "$(ocp_value error-recovery-log 'Panic ID')" 0x0
same "no recovery action" "$(ocp_value error-recovery-log 'Device Recovery Action 1')" 0x1
same "Write Zeroes as Identify says" "$(ocp_value device-capability-log 'Write Zeroes Command Support')" 0x17
same "25 W are enough" "$(ocp_value device-capability-log 'Minimum Valid DSSD Power State')" 0x19
same "the factory's threshold" "$(ocp_value latency-monitor-log 'Active Threshold A')" "30 ms"

succeeds "nvme ocp set-latency-monitor-feature" nvme ocp set-latency-monitor-feature "$admin" --active_threshold_a=0 \
    --active_threshold_b=1 --active_threshold_c=2 --active_threshold_d=3
nvme ocp set-latency-monitor-feature "$admin" --active_threshold_a=3 --active_threshold_b=2 >"$SCRATCH/output" 2>&1 || true
matches "thresholds that fall" "$(cat "$SCRATCH/output")" "Invalid Field in Command"
succeeds "the written data is made durable" dd if=/dev/zero of="$device" bs=64k count=8 conv=fsync
nvme ocp latency-monitor-log "$admin" >"$SCRATCH/ocp-latency-monitor-log" 2>/dev/null || true
same "5 ms are the least that can be set" "$(ocp_value latency-monitor-log 'Active Threshold A')" "5 ms"
same "the counters start at 0 again" "$(ocp_value latency-monitor-log 'Static Bucket Counter: Bucket 3' | tr -s ' ')" "0 0 0"
