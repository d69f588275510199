# shellcheck shell=dash
# The kernel handles the failures of the fault plans in ../../faults: bad blocks, read-only media,
# and a command that never completes.

case $TRANSPORTS in
*tcp*) ;;
*)
    skip "faults" "this drive does not fail on demand"
    exit 0
    ;;
esac

device=$(block_device pcie 1)
admin=$(admin_device pcie)

# `read_one NUMBER` reads one block of 4 KiB.
read_one() {
    read_device "$device" $((4096 * $1)) 4096 >"$SCRATCH/back"
}
write_one() {
    write_device "$device" $((4096 * $1)) <"$SCRATCH/data"
}
cannot() {
    ! "$@"
}

# `warning BIT` prints a bit of Critical Warning.
warning() {
    nvme smart-log "$admin" -o binary >"$SCRATCH/smart" && bit "$SCRATCH/smart" 0 1 "$1"
}
has_kelvins() {
    nvme smart-log "$admin" -o binary >"$SCRATCH/smart" && [ "$(field "$SCRATCH/smart" 1 2)" = "$1" ]
}

random_bytes 4096 >"$SCRATCH/data"
succeeds "write" write_one 1030
echo "@@faults bad-blocks"
eventually "a bad block cannot be read" 10 cannot read_one 1030
succeeds "the one before it can" read_one 1029
matches "the kernel says medium error" "$(dmesg | tail -n 20)" 'critical medium error'
same "the drive says that it is degraded" "$(warning 2)" 1

echo "@@faults read-only"
eventually "read-only media cannot be written" 10 cannot write_one 1030
succeeds "and can be read" read_one 1030
same "the earlier data is unchanged" "$(sum_of "$SCRATCH/back")" "$(sum_of "$SCRATCH/data")"
same "the drive says that its media is read-only" "$(warning 3)" 1

echo "@@faults stuck"
eventually "a command is to be stuck" 10 has_kelvins 350
succeeds "commands have a timeout of one second" sh -c "echo 1000 >/sys/block/${device##*/}/queue/io_timeout"
succeeds "a command that is stuck is aborted and sent again" read_one 1030
same "the earlier data is unchanged" "$(sum_of "$SCRATCH/back")" "$(sum_of "$SCRATCH/data")"
matches "the kernel has aborted it" "$(dmesg | tail -n 20)" 'timeout, aborting'
succeeds "commands have the earlier timeout" sh -c "echo 30000 >/sys/block/${device##*/}/queue/io_timeout"

echo "@@faults none"
eventually "the drive works again" 10 has_kelvins 313
succeeds "write" write_one 1030
