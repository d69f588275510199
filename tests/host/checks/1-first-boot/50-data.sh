# shellcheck shell=dash
# Data survives writes and reads of mixed sizes and depths, on several queues, and across the two
# transports.

for transport in $TRANSPORTS; do
    device=$(block_device "$transport" 1)
    generic=$(generic_device "$transport" 1)
    # Emulated TCP serves about a thousand requests per second.
    case $transport in pcie) size=12m ;; *) size=2m ;; esac
    succeeds "$transport: random mix of sizes, verified" \
        run_fio "$device" --ioengine=io_uring --rw=randrw --bsrange=4k-64k --iodepth=16 --size=$size \
        --verify=crc32c --verify_fatal=1
    succeeds "$transport: passthrough, verified" \
        run_fio "$generic" --ioengine=io_uring_cmd --cmd_type=nvme --rw=randwrite --bs=4k --iodepth=8 --size=1m \
        --offset=64m --verify=crc32c --verify_fatal=1
    succeeds "$transport: two writers, verified" \
        run_fio "$device" --ioengine=io_uring --rw=randrw --bs=8k --iodepth=4 --size=512k --numjobs=2 \
        --offset=128m --offset_increment=16m --verify=crc32c --verify_fatal=1
    succeeds "$transport: transfers of the largest size, verified" \
        run_fio "$device" --ioengine=io_uring --rw=write --bs=1m --iodepth=2 --size=4m --offset=256m \
        --verify=crc32c --verify_fatal=1
done

if [ "$TRANSPORTS" = "pcie tcp" ]; then
    for pair in pcie:tcp tcp:pcie; do
        random_bytes 524288 >"$SCRATCH/data"
        succeeds "write through ${pair%:*}" write_device "$(block_device "${pair%:*}" 1)" 33554432 <"$SCRATCH/data"
        read_device "$(block_device "${pair#*:}" 1)" 33554432 524288 >"$SCRATCH/back"
        same "${pair#*:} reads what ${pair%:*} wrote" "$(sum_of "$SCRATCH/back")" "$(sum_of "$SCRATCH/data")"
    done
fi
