# shellcheck shell=dash
# Data reaches the handles that fio asks for, by passthrough with placement identifiers and through
# the block layer with write streams.

# Each handle gets its own amount of data, less than a reclaim unit. The amounts show which request
# reached which handle.
blocks_of() { # KIBIBYTES
    echo $(($1 * 1024 / BLOCK_BYTES % unit_blocks))
}

for transport in $TRANSPORTS; do
    admin=$(admin_device "$transport")
    device=$(block_device "$transport" 1)
    generic=$(generic_device "$transport" 1)
    unit_blocks=$(($(reclaim_unit_bytes "$admin") / BLOCK_BYTES))

    before=$(handle_status "$device")
    written=$(fdp_statistic "$admin" hbmw)
    succeeds "$transport: fio, io_uring_cmd, placement identifiers" \
        fio --output="$SCRATCH/fio" --name=global --filename="$generic" --thread --ioengine=io_uring_cmd --cmd_type=nvme --rw=randwrite --bs=16k \
        --iodepth=8 --dataplacement=fdp --plid_select=roundrobin \
        --name=one --size=64k --plids=5 \
        --name=two --size=256k --plids=1,3 \
        --name=three --size=576k --plids=2,4,6
    same "$transport: the data went to them" "$(moved_handles "$before" "$(handle_status "$device")" "$unit_blocks")" \
        "1:$(blocks_of 128) 2:$(blocks_of 192) 3:$(blocks_of 128) 4:$(blocks_of 192) 5:$(blocks_of 64) 6:$(blocks_of 192)"
    same "$transport: HBMW counts it" $(($(fdp_statistic "$admin" hbmw) - written)) $((896 * 1024))

    if [ "$(queue_limit "$device" max_write_streams || echo 0)" = 0 ]; then
        skip "$transport: fio, write hints" "this kernel has no write streams"
        continue
    fi
    # On a block device the kernel takes the value of the hint as the stream, and stream n is
    # placement handle n - 1. The hint belongs to the device and not to the file descriptor, so the
    # jobs run one after the other.
    before=$(handle_status "$device")
    succeeds "$transport: fio, io_uring, write hints" \
        fio --output="$SCRATCH/fio" --name=global --filename="$device" --thread --direct=1 --ioengine=io_uring --rw=write --bs=32k --iodepth=4 \
        --name=none --size=64k --write_hint=none \
        --name=short --stonewall --size=96k --write_hint=short \
        --name=medium --stonewall --size=128k --write_hint=medium \
        --name=long --stonewall --size=160k --write_hint=long \
        --name=extreme --stonewall --size=192k --write_hint=extreme
    same "$transport: the data went to their handles" "$(moved_handles "$before" "$(handle_status "$device")" "$unit_blocks")" \
        "0:$(blocks_of 64) 1:$(blocks_of 96) 2:$(blocks_of 128) 3:$(blocks_of 160) 4:$(blocks_of 192)"
done
