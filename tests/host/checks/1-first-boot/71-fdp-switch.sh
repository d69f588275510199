# shellcheck shell=dash
# FDP is disabled and enabled again while the drive is in use. As on hardware, the host deletes the
# namespaces, sets the feature, creates namespaces and attaches them. One transport disables FDP,
# and the other enables it with the other configuration.

enabled() { # ADMIN-DEVICE: FDPE and the configuration's index
    echo $(($(nvme get-feature "$1" --feature-id=0x1d --cdw11=1 | sed -n 's/.*value: *//p')))
}

admin=$(admin_device "${TRANSPORTS%% *}")
head -c 4096 /dev/zero >"$SCRATCH/block"
same "FDP is on" "$(enabled "$admin")" 1
succeeds "delete the namespaces" delete_namespaces "$admin"
succeeds "nvme fdp feature --disable" nvme fdp feature "$admin" --endgrp-id=1 --disable
for transport in $TRANSPORTS; do
    same "$transport: FDP is off" "$(enabled "$(admin_device "$transport")")" 0
done
for log in usage stats events; do
    refused "nvme fdp $log" 0x029 nvme fdp $log "$admin" --endgrp-id=1
done
succeeds "nvme fdp configs" nvme fdp configs "$admin" --endgrp-id=1
same "make a namespace" "$(make_namespace "$admin" 64 "$FORMAT_4096" "$TRANSPORTS")" 1
for transport in $TRANSPORTS; do
    eventually "$transport: its block device appears" 10 has_block_device "$transport" 1
    device=$(block_device "$transport" 1)
    same "$transport: no write streams" "$(queue_limit "$device" max_write_streams)" 0
    refused "$transport: nvme fdp status" 0x029 nvme fdp status "$device"
    refused "$transport: a write with a placement identifier" 0x002 \
        nvme write "$device" --start-block=0 --block-count=0 --data-size=4096 --data="$SCRATCH/block" --dir-type=2 --dir-spec=0
    succeeds "$transport: random mix, verified" \
        run_fio "$device" --ioengine=io_uring --rw=randrw --bs=16k --iodepth=4 --size=1m --verify=crc32c --verify_fatal=1
done

admin=$(admin_device "${TRANSPORTS##* }")
refused "on again while there is a namespace" 0x00c nvme fdp feature "$admin" --endgrp-id=1 --enable-conf-idx=0
succeeds "delete it" delete_namespaces "$admin"
refused "a configuration that there is not" 0x002 nvme fdp feature "$admin" --endgrp-id=1 --enable-conf-idx=9
nvme fdp configs "$admin" --endgrp-id=1 --raw-binary >"$SCRATCH/configs"
if [ "$(field "$SCRATCH/configs" 0 2)" -ge 1 ]; then
    second=$((16 + $(field "$SCRATCH/configs" 16 2)))
    same "the handles of configuration 1 are persistently isolated" "$(field "$SCRATCH/configs" $((second + 64)) 1)" 2
    succeeds "enable configuration 1" nvme fdp feature "$admin" --endgrp-id=1 --enable-conf-idx=1
    same "it is on" "$(enabled "$admin")" 257
    same "make a namespace" "$(make_namespace "$admin" 64 "$FORMAT_4096" "$TRANSPORTS" --nphndls=2 --phndls=0,3)" 1
    succeeds "fio, io_uring_cmd, both identifiers" \
        run_fio "$(generic_device "${TRANSPORTS##* }" 1)" --ioengine=io_uring_cmd --cmd_type=nvme --rw=randwrite --bs=16k \
        --iodepth=4 --size=1m --dataplacement=fdp --plids=0,1
    succeeds "delete it" delete_namespaces "$admin"
    succeeds "nvme fdp feature --disable" nvme fdp feature "$admin" --endgrp-id=1 --disable
else
    skip "configuration 1" "the drive offers one configuration"
fi
succeeds "enable configuration 0" nvme fdp feature "$admin" --endgrp-id=1 --enable-conf-idx=0
same "FDP is on again" "$(enabled "$admin")" 1
same "one namespace over the whole drive" "$(restore_namespace)" 1
for transport in $TRANSPORTS; do
    same "$transport: write streams" "$(queue_limit "$(block_device "$transport" 1)" max_write_streams)" 8
done
