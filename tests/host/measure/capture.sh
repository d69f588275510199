# shellcheck shell=dash
# `warp capture` on a stock kernel. fio writes two files of ext4, and the capture attributes each
# byte to its file. The capture goes to the host for `warp whatif`. Parameters are SERIAL and
# TRANSPORTS=pcie.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

WARP=/warp/bin/warp
HOT_BYTES=$((6 << 20)) WARM_BYTES=$((24 << 20))

# `written_to FILE NAME` prints the bytes that a capture shows for a file.
written_to() {
    awk -F , -v name="$2" '$3 == name && $4 == "W" { bytes += $6 } END { print bytes + 0 }' "$1"
}

# shellcheck disable=SC2317  # called by succeeds
capture() { # FILE COMMAND...
    file=$1
    shift
    "$WARP" capture "$device" --out "$file" -- "$@"
}

mkdir -p "$SCRATCH"
wait_for 10 has_block_device pcie 1
device=$(block_device pcie 1)
if ! "$WARP" --version >/dev/null 2>&1; then
    skip "warp capture in the guest" "this build of warp does not run there: $("$WARP" --version 2>&1 | head -n 1)"
    exit 0
fi

# `counters FILE` prints the counters of a run from the output of `--json`.
counters() {
    sed -E 's/.*("host_bytes_written":[0-9]+,"media_bytes_written":[0-9]+,"media_bytes_erased":[0-9]+).*/\1/' "$1"
}

# A job through the kernel's passthrough on a new drive causes the same counters as in the lab.
cat >"$SCRATCH/on.fio" <<END
[global]
ioengine=io_uring_cmd
cmd_type=nvme
filename=/dev/ng0n1
rw=randwrite
norandommap
bs=64k
dataplacement=fdp
[hot]
size=32m
io_size=128m
plids=0
[cold]
offset=32m
size=96m
io_size=192m
plids=1
END
"$WARP" run "$SCRATCH/on.fio" --target "$device" --no-keep >"$SCRATCH/output" 2>&1
same "warp run --target a drive of this machine needs a confirmation" $? 2
matches "which it says" "$(cat "$SCRATCH/output")" "--overwrite"
succeeds "with it, it runs" "$WARP" run "$SCRATCH/on.fio" --target "$device" --overwrite --no-keep --json
counters "$SCRATCH/output" >"$SCRATCH/drive"
succeeds "so does the lab" "$WARP" run "$SCRATCH/on.fio" --device warp_default --capacity 128M --untimed --no-keep --json
same "the drive and the lab count the same" "$(cat "$SCRATCH/drive")" "$(counters "$SCRATCH/output")"

umount /sys/kernel/tracing 2>/dev/null
capture "$SCRATCH/none" true >"$SCRATCH/output" 2>&1
same "without tracing it is refused" $? 2
matches "in a sentence" "$(cat "$SCRATCH/output")" "^warp: this kernel has no tracing at /sys/kernel/tracing.*mount -t tracefs"
succeeds "tracing is mounted" mount -t tracefs nodev /sys/kernel/tracing
succeeds "a file system on the namespace" make_file_system ext4 "$device"
succeeds "it is mounted" mount_file_system ext4 "$device"
refused_for="$("$WARP" run "$SCRATCH/on.fio" --target "$device" --overwrite --no-keep 2>&1)"
same "warp run --target a mounted drive is refused" $? 2
matches "because it is in use" "$refused_for" "in use|mounted|busy"
mkdir /mnt/ext4/hot /mnt/ext4/warm
cat >"$SCRATCH/files.fio" <<END
[global]
ioengine=io_uring
norandommap
[hot]
direct=1
filename=/mnt/ext4/hot/data
rw=randwrite
bs=4k
size=$HOT_BYTES
io_size=$((2 * HOT_BYTES))
iodepth=8
[warm]
filename=/mnt/ext4/warm/data
rw=write
bs=64k
size=$WARM_BYTES
END
succeeds "fio is captured" capture "$SCRATCH/capture.csv" fio --output="$SCRATCH/fio" "$SCRATCH/files.fio"
sed 's/^/# /' "$SCRATCH/output"
same "it begins with the header" "$(head -n 1 "$SCRATCH/capture.csv")" "time,process,file,operation,offset,length"
same "all that was written directly is of its file" "$(written_to "$SCRATCH/capture.csv" hot/data)" $((2 * HOT_BYTES))
same "all that was written through the cache is, too" "$(written_to "$SCRATCH/capture.csv" warm/data)" $WARM_BYTES
matches "by its process" "$(grep -m 1 hot/data "$SCRATCH/capture.csv")" ",fio,hot/data,W,[0-9]*,4096"
same "no events were lost" "$(grep -c 'were lost' "$SCRATCH/output")" 0
same "its instance is gone" "$(ls /sys/kernel/tracing/instances)" ""
capture "$SCRATCH/capture.csv" true >"$SCRATCH/output" 2>&1
same "a capture is not overwritten" $? 2
capture "$SCRATCH/second.csv.zst" sh -c 'echo x >/mnt/ext4/short; rm /mnt/ext4/short; exit 7' >"$SCRATCH/output" 2>&1
same "the exit code is that of the command" $? 7
"$WARP" capture "$device" --out "$SCRATCH/third.csv" -- sh -c 'kill -INT $PPID; exec sleep 1' >"$SCRATCH/output" 2>&1
same "Ctrl-C ends it with its command" $? 0
same "and leaves no instance" "$(ls /sys/kernel/tracing/instances)" ""
umount /mnt/ext4
cp "$SCRATCH/capture.csv" /shared/
exit 0
