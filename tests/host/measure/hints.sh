# shellcheck shell=dash
# Measures which placement handle receives a file's writes for each write hint (F_SET_RW_HINT). It
# covers the block device and file systems, with direct writes and through the page cache.
# Parameters are SERIAL and TRANSPORTS=pcie.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

HINTS="none short medium long extreme"
# Size of a file with a hint. It is large against the file system's own writes, and smaller than a
# reclaim unit.
FILE_KIB=512

# `handle_of NAME DIRECT HINT ARGUMENTS-OF-FIO...` writes a file or the device with a hint. It
# prints the handles that receive more than half of the data.
handle_of() {
    local name=$1 direct=$2 hint=$3 before
    shift 3
    before=$(handle_status "$device")
    fio --name="$name-$direct-$hint" --rw=write --bs=64k --size=${FILE_KIB}k --direct="$direct" --end_fsync=1 --write_hint="$hint" \
        --output="$SCRATCH/fio" "$@" || echo "fio ended with $?"
    moved_handles "$before" "$(handle_status "$device")" "$unit_blocks" >"$SCRATCH/moved"
    echo "# $name, direct=$direct, $hint: $(cat "$SCRATCH/moved")" >&2
    tr ' ' '\n' <"$SCRATCH/moved" | awk -F : -v most=$((FILE_KIB / 8)) '$2 > most { print $1 }' | paste -sd ,
}

# `handles_of NAME DIRECT ARGUMENTS-OF-FIO...` prints the handles of all hints in a row.
handles_of() {
    local name=$1 direct=$2 hint row=''
    shift 2
    for hint in $HINTS; do
        row="$row $(handle_of "$name" "$direct" "$hint" "$@")"
    done
    echo "$row"
}

mkdir -p "$SCRATCH"
wait_for 10 has_block_device pcie 1
admin=$(admin_device pcie)
device=$(block_device pcie 1)
unit_blocks=$(($(reclaim_unit_bytes "$admin") / 4096))
echo "# $(uname -r): max_write_streams $(queue_limit "$device" max_write_streams), write_stream_granularity $(queue_limit "$device" write_stream_granularity)"
at_least "a reclaim unit holds a file" "$unit_blocks" $((FILE_KIB / 4 + 32))
rows="block device, direct|$(handles_of raw 1 --filename="$device" --ioengine=io_uring)
block device, page cache|$(handles_of raw 0 --filename="$device")"
for name in ext4 xfs f2fs; do
    succeeds "$name: mkfs" make_file_system "$name" "$device"
    succeeds "$name: mount" mount_file_system "$name" "$device"
    rows="$rows
$name, direct|$(handles_of "$name" 1 --directory="/mnt/$name")
$name, page cache|$(handles_of "$name" 0 --directory="/mnt/$name")"
    succeeds "$name: unmount" umount "/mnt/$name"
done
echo "| written through | $(echo "$HINTS" | sed 's/ / | /g') |"
echo "|---|---|---|---|---|---|"
echo "$rows" | sed 's/ *| */ | /; s/\([0-9]\) /\1 | /g; s/^/| /; s/$/ |/'
# F2FS of older kernels behaves like the others, with 0 for all hints.
for cache in direct "page cache"; do
    same "f2fs, $cache: hints reach the handles that the model's hints = \"streams\" says" \
        "$(echo "$rows" | sed -n "s/^f2fs, $cache| *//p")" "1 0 1 1 2"
done
exit 0
