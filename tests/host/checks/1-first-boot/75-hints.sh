# shellcheck shell=dash
# The hints and write streams of a program in the table of `warp hints`, on the block device and
# through F2FS.

WARP=/warp/bin/warp

# Runs a command below `warp hints`, and keeps the rows in $SCRATCH/rows.
hints_of() {
    "$WARP" hints --device "$device" --format csv -- "$@" 2>"$SCRATCH/rows"
    code=$?
}

# `write_file FIO-OPTIONS...` prints the command that writes 1 MiB.
write_file() {
    echo "fio --name=hinted --rw=write --bs=64k --size=1m --direct=1 --output=/dev/null $*"
}

if ! "$WARP" --version >/dev/null 2>&1; then
    skip "warp hints in the guest" "this build of warp does not run there: $("$WARP" --version 2>&1 | head -n 1)"
else
    device=$(block_device pcie 1)
    # The kernel keeps a device's hint after its program ended, so the write without a hint is first.
    # shellcheck disable=SC2046  # a command with its arguments
    hints_of $(write_file --filename="$device")
    matches "hints: without a hint there is no stream" "$(cat "$SCRATCH/rows")" '^fio,\(none\),not set,none,1048576$'
    # shellcheck disable=SC2046
    hints_of $(write_file --write_hint=short --filename="$device")
    same "hints: the exit code is that of the program" $code 0
    matches "hints: the sentence has the bytes and the shares" "$(cat "$SCRATCH/rows")" \
        "^warp: 1 MiB were written to ${device#/dev/}\. 100 % of it carried a hint, and 100 % a write stream$"
    matches "hints: a hint of the device is a stream" "$(cat "$SCRATCH/rows")" '^fio,\(none\),short,2,1048576$'

    succeeds "hints: F2FS" make_file_system f2fs "$device"
    succeeds "hints: mount" mount_file_system f2fs "$device"
    hints_of sh -c "$(write_file --write_hint=extreme --filename=/mnt/f2fs/cold_01.sst)
        $(write_file --write_hint=short --filename=/mnt/f2fs/hot.log); exit 7"
    same "hints: the exit code of a program that fails" $code 7
    matches "hints: F2FS has a stream for cold data" "$(cat "$SCRATCH/rows")" '^fio,cold_#\.sst,extreme,3,1048576$'
    matches "hints: F2FS has a stream for hot data" "$(cat "$SCRATCH/rows")" '^fio,hot\.log,short,1,1048576$'
    succeeds "hints: unmount" umount /mnt/f2fs
    same "hints: no instance is left" "$(ls /sys/kernel/tracing/instances)" ""
fi
