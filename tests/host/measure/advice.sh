# shellcheck shell=dash
# Placement feedback from fio to `warp drive advise`. fio writes misplaced data, and the advice
# names it through the kernel. After a move to the advised handle, the same job causes fewer copies.
#
# The workload is that of Kang and Shin, with WARM on the placement identifier of HOT. HOT is 4 KiB
# at random on a tenth of the drive. WARM overwrites files of 64 KiB in order. COLD is the rest of
# the drive, written once. Parameters are SERIAL and TRANSPORTS=pcie.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

WARP=/warp/bin/warp
HOT_BYTES=$((6 << 20)) WARM_BYTES=$((24 << 20))

# `hot_and_warm IDENTIFIER-OF-WARM` writes HOT and WARM, two bytes of HOT for each byte of WARM. HOT
# has identifier 0.
hot_and_warm() {
    cat >"$SCRATCH/job.fio" <<END
[global]
filename=$generic
ioengine=io_uring_cmd
cmd_type=nvme
dataplacement=fdp
norandommap
flow_id=1
[hot]
rw=randwrite
bs=4k
size=$HOT_BYTES
io_size=$((2 * WARM_BYTES))
iodepth=8
plids=0
flow=32
[warm]
rw=write
bs=64k
offset=$HOT_BYTES
size=$WARM_BYTES
plids=$1
flow=1
END
    written=$(fdp_statistic "$admin" hbmw)
    media=$(fdp_statistic "$admin" mbmw)
    succeeds "fio: HOT on identifier 0, WARM on $1" fio --output="$SCRATCH/fio" "$SCRATCH/job.fio"
    written=$(($(fdp_statistic "$admin" hbmw) - written))
    same "it writes the planned bytes" "$written" $((3 * WARM_BYTES))
    waf_milli=$((($(fdp_statistic "$admin" mbmw) - media) * 1000 / written))
    echo "# write amplification of HOT on 0 and WARM on $1: $waf_milli per mille"
}

# shellcheck disable=SC2317  # called by succeeds
advise() { # ARGUMENTS...
    "$WARP" drive advise "$generic" --owners "$SCRATCH/owners" --policy reported --readings 1 "$@"
}

mkdir -p "$SCRATCH"
wait_for 10 has_block_device pcie 1
admin=$(admin_device pcie)
device=$(block_device pcie 1)
generic=$(generic_device pcie 1)
if ! "$WARP" --version >/dev/null 2>&1; then
    skip "warp drive advise in the guest" "this build of warp does not run there: $("$WARP" --version 2>&1 | head -n 1)"
    exit 0
fi
echo "HOT,0,$HOT_BYTES,0
WARM,$HOT_BYTES,$WARM_BYTES,0
COLD,$((HOT_BYTES + WARM_BYTES)),$(($(size_of "$device") - HOT_BYTES - WARM_BYTES)),2" >"$SCRATCH/owners"

succeeds "a drive without events is read" advise
enable=$(sed -n 's/.*with \(nvme fdp set-events .* --enable\)$/\1/p' "$SCRATCH/output")
matches "it is told how to report" "$enable" "^nvme fdp set-events $device --namespace-id=1 --placement-handle=0 "
# shellcheck disable=SC2086  # a command with its arguments
succeeds "the command that it says" $enable

fill="--ioengine=io_uring_cmd --cmd_type=nvme --dataplacement=fdp --rw=write --bs=128k --iodepth=8"
# shellcheck disable=SC2086  # options
succeeds "fio: fill HOT and WARM" run_fio "$generic" $fill --size=$((HOT_BYTES + WARM_BYTES)) --plids=0
# shellcheck disable=SC2086  # options
succeeds "fio: fill COLD" run_fio "$generic" $fill --offset=$((HOT_BYTES + WARM_BYTES)) --plids=2
hot_and_warm 0
misplaced=$waf_milli
succeeds "warp drive advise" advise --hook "echo \$WARP_OWNER \$WARP_FROM \$WARP_TO >>$SCRATCH/moves" --json "$SCRATCH/advice"
sed 's/^/# /' "$SCRATCH/output"
same "it names only WARM" "$(sort -u "$SCRATCH/moves")" "WARM 0 1"
matches "its JSON says so, too" "$(cat "$SCRATCH/advice")" '"owner":"WARM","from":0,"to":1,"reason":"reported".*"carried_out":true'
to=$(awk '$1 == "WARM" { print $3; exit }' "$SCRATCH/moves")
hot_and_warm "${to:-0}" # This run collects the mixed reclaim units.
hot_and_warm "${to:-0}"
at_least "write amplification drops by a quarter at least" $((misplaced * 3 / 4)) "$waf_milli"

# The second half does the same with files. The file system writes all of them with one identifier.
succeeds "a file system on the namespace" make_file_system ext4 "$device"
succeeds "it is mounted" mount_file_system ext4 "$device"
mkdir /mnt/ext4/hot /mnt/ext4/warm /mnt/ext4/cold
succeeds "fio: a file that stays" run_fio /mnt/ext4/cold/data --ioengine=io_uring --rw=write --bs=128k --size=22m
cat >"$SCRATCH/files.fio" <<END
[global]
ioengine=io_uring
direct=1
norandommap
flow_id=1
[hot]
filename=/mnt/ext4/hot/data
rw=randwrite
bs=4k
size=$HOT_BYTES
io_size=$((2 * WARM_BYTES))
iodepth=8
flow=32
[warm]
filename=/mnt/ext4/warm/data
rw=write
bs=64k
size=$WARM_BYTES
flow=1
END
succeeds "fio: hot and warm files" fio --output="$SCRATCH/fio" "$SCRATCH/files.fio"
rm "$SCRATCH/moves"
succeeds "warp drive advise, files" "$WARP" drive advise "$device" --files /mnt/ext4 --depth 1 --policy reported --readings 2 --every 1 \
    --hook "echo \$WARP_OWNER \$WARP_FROM \$WARP_TO >>$SCRATCH/moves"
sed 's/^/# /' "$SCRATCH/output"
same "it names the directory" "$(sort -u "$SCRATCH/moves")" "warm 0 1"
umount /mnt/ext4
"$WARP" drive advise "$admin" --chunks 4 --readings 1 >"$SCRATCH/output" 2>&1
same "a controller's device is refused" $? 2
matches "in a sentence" "$(cat "$SCRATCH/output")" "is a controller. Give the device of a namespace, such as ${admin}n1"

"$WARP" drive advise "$generic" --chunks 4 --every 0.5 >"$SCRATCH/output" 2>&1 &
advising=$!
wait_for 10 grep -q 'reading 2' "$SCRATCH/output"
echo 1 >"/sys/class/nvme/$(controller pcie)/device/remove"
wait $advising
same "a drive that is removed ends it" $? 2
matches "in a sentence" "$(tail -n 1 "$SCRATCH/output")" "^warp: .*the device was removed"
exit 0
