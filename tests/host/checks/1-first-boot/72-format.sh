# shellcheck shell=dash
# Format deletes the data, and the kernels of both controllers see the new block size without a
# rescan by the user.

has_blocks_of() { # TRANSPORT BYTES
    has_block_device "$1" 1 && [ "$(queue_limit "$(block_device "$1" 1)" logical_block_size)" = "$2" ]
}

available_of() { # DEVICE: of an identifier that nothing here writes to
    handle_status "$1" | awk '$1 == 5 { print $3 }'
}

format_and_use() { # TRANSPORT BYTES LBA-FORMAT SECURE-ERASE
    local transport=$1 bytes=$2 device other available bytes_before
    device=$(block_device "$transport" 1)
    available=$(available_of "$device")
    bytes_before=$(queue_limit "$device" logical_block_size)
    random_bytes 65536 >"$SCRATCH/data"
    succeeds "$transport: write" write_device "$device" 1048576 <"$SCRATCH/data"
    succeeds "$transport: nvme format with $bytes-byte blocks" \
        nvme format "$device" --namespace-id=1 --lbaf="$3" --ses="$4" --force
    for other in $TRANSPORTS; do
        eventually "$other: logical blocks of $bytes bytes" 10 has_blocks_of "$other" "$bytes"
        same "$other: the size is the same" "$(size_of "$(block_device "$other" 1)")" "$CAPACITY_BYTES"
        succeeds "$other: the data is gone" is_zero "$(block_device "$other" 1)" 1048576 65536
    done
    device=$(block_device "$transport" 1)
    succeeds "$transport: random mix from $bytes bytes on, verified" \
        run_fio "$device" --ioengine=io_uring --rw=randrw --bsrange="$bytes-16k" --iodepth=4 --size=512k \
        --verify=crc32c --verify_fatal=1
    same "$transport: RUAMW counts blocks of that size" \
        "$(available_of "$device")" $((available * bytes_before / bytes))
}

format_and_use "${TRANSPORTS%% *}" 512 "$FORMAT_512" 0
format_and_use "${TRANSPORTS##* }" 4096 "$FORMAT_4096" 1
refused "a format that there is not" 0x10a nvme format "$(admin_device pcie)" --namespace-id=1 --lbaf=9 --force

# Metadata is transferred in its own buffer. This check does not involve the block layer.
device=$(block_device pcie 1)
succeeds "pcie: nvme format with 4096-byte blocks and 64 bytes of metadata" \
    nvme format "$device" --namespace-id=1 --lbaf="$FORMAT_METADATA" --ms=0 --force
generic=$(generic_device pcie 1)
random_bytes 16384 >"$SCRATCH/data"
random_bytes 256 >"$SCRATCH/metadata"
succeeds "pcie: write with metadata" nvme write "$generic" --namespace-id=1 --start-block=100 --block-count=3 \
    --data-size=16384 --data="$SCRATCH/data" --metadata-size=256 --metadata="$SCRATCH/metadata"
succeeds "pcie: read it" nvme read "$generic" --namespace-id=1 --start-block=100 --block-count=3 \
    --data-size=16384 --data="$SCRATCH/data-back" --metadata-size=256 --metadata="$SCRATCH/metadata-back"
same "pcie: the data" "$(sum_of "$SCRATCH/data-back")" "$(sum_of "$SCRATCH/data")"
same "pcie: the metadata" "$(sum_of "$SCRATCH/metadata-back")" "$(sum_of "$SCRATCH/metadata")"
succeeds "pcie: nvme format as at the start" nvme format "$(admin_device pcie)" --namespace-id=1 --lbaf="$FORMAT_4096" --force
for transport in $TRANSPORTS; do
    eventually "$transport: logical blocks of 4096 bytes" 10 has_blocks_of "$transport" 4096
    same "$transport: the size is the same" "$(size_of "$(block_device "$transport" 1)")" "$CAPACITY_BYTES"
done
