# shellcheck shell=dash
# Namespaces are created and deleted with placement handle lists, and the drive notifies the other
# controller.

usage_of() { # ADMIN-DEVICE: the use of each reclaim unit handle
    nvme fdp usage "$1" --endgrp-id=1 --raw-binary >"$SCRATCH/usage"
    od -A n -v -t u1 -w8 -j 8 "$SCRATCH/usage" | awk '{ printf "%d ", $1 }' | sed 's/ $//'
}
allocated_and_active() { # ADMIN-DEVICE
    echo "$(namespaces "$1" --all) / $(namespaces "$1")"
}
create() { # BLOCKS OPTIONS...
    local blocks=$1
    shift
    nvme create-ns "$admin" --nsze="$blocks" --ncap="$blocks" --nmic=1 --endg-id=1 "$@"
}

first=${TRANSPORTS%% *}
last=${TRANSPORTS##* }
admin=$(admin_device "$first")
first_id=$(controller_identifier "$first")
last_id=$(controller_identifier "$last")
blocks=$((64 * 1048576 / 4096))

succeeds "delete namespace 1" nvme delete-ns "$admin" --namespace-id=1
for transport in $TRANSPORTS; do
    eventually "$transport: its block device goes" 10 has_no_block_device "$transport" 1
    same "$transport: no namespace" "$(allocated_and_active "$(admin_device "$transport")")" " / "
done
same "no handle is used" "$(usage_of "$admin")" "0 0 0 0 0 0 0 0"
nvme get-log "$admin" --log-id=0x04 --log-len=4096 --raw-binary >"$SCRATCH/changed"

refused "a placement handle list with a handle that there is not" 0x02a create $blocks --flbas="$FORMAT_4096" --nphndls=2 --phndls=0,8
refused "a format that there is not" 0x10a create $blocks --flbas=9
refused "more blocks than the drive has" 0x115 create $((CAPACITY_BYTES * 2 / 4096)) --flbas="$FORMAT_4096"
refused "more capacity than size" 0x002 nvme create-ns "$admin" --nsze=$blocks --ncap=$((blocks * 2)) --flbas="$FORMAT_4096"
same "no namespace was created" "$(allocated_and_active "$admin")" " / "

succeeds "create with handles 5, 1 and 7" create $blocks --flbas="$FORMAT_4096" --nphndls=3 --phndls=5,1,7
same "it is allocated, not active" "$(allocated_and_active "$admin")" "1 / "
same "its handles are used, as the host said" "$(usage_of "$admin")" "0 1 0 0 0 1 0 1"
refused "attach to a controller that there is not" 0x11c \
    nvme attach-ns "$admin" --namespace-id=1 --controllers=777
succeeds "attach" nvme attach-ns "$admin" --namespace-id=1 --controllers="$first_id,$last_id"
refused "attach again" 0x118 nvme attach-ns "$admin" --namespace-id=1 --controllers="$first_id"
for transport in $TRANSPORTS; do
    eventually "$transport: its block device appears" 10 has_block_device "$transport" 1
    device=$(block_device "$transport" 1)
    same "$transport: size" "$(size_of "$device")" $((blocks * 4096))
    same "$transport: write streams" "$(queue_limit "$device" max_write_streams)" 3
    same "$transport: placement identifiers and their handles" \
        "$(handle_status "$device" | cut -d ' ' -f 1,2 | tr '\n' ,)" "0 5,1 1,2 7,"
    before=$(handle_status "$device")
    succeeds "$transport: fio, io_uring_cmd, identifier 2" \
        run_fio "$(generic_device "$transport" 1)" --ioengine=io_uring_cmd --cmd_type=nvme --rw=write --bs=16k --iodepth=4 \
        --size=128k --dataplacement=fdp --plids=2
    same "$transport: the data went there" \
        "$(moved_handles "$before" "$(handle_status "$device")" $(($(reclaim_unit_bytes "$admin") / 4096)))" 2:32
    succeeds "$transport: nvme id-ns" nvme id-ns "$device"
done

succeeds "create another without a list, with 512-byte blocks" create $((blocks * 8)) --flbas="$FORMAT_512"
same "both are allocated" "$(allocated_and_active "$admin")" "1 2 / 1"
succeeds "attach it to one controller" nvme attach-ns "$admin" --namespace-id=2 --controllers="$last_id"
eventually "$last: its block device appears" 10 has_block_device "$last" 2
same "$last: active namespaces" "$(namespaces "$(admin_device "$last")")" "1 2"
if [ "$first" != "$last" ]; then
    same "$first: active namespaces" "$(namespaces "$admin")" "1"
    succeeds "$first: the other's namespace is not its own" has_no_block_device "$first" 2
fi
device=$(block_device "$last" 2)
same "$last: logical blocks" "$(queue_limit "$device" logical_block_size)" 512
succeeds "$last: random mix, verified" \
    run_fio "$device" --ioengine=io_uring --rw=randrw --bsrange=512-8k --iodepth=4 --size=512k --verify=crc32c --verify_fatal=1
same "$last: the drive chose a handle" "$(handle_status "$device" | wc -l)" 1
if [ "$first" != "$last" ]; then
    refused "detach from a controller that it is not attached to" 0x11a \
        nvme detach-ns "$admin" --namespace-id=2 --controllers="$first_id"
fi
succeeds "detach" nvme detach-ns "$admin" --namespace-id=2 --controllers="$last_id"
eventually "$last: its block device goes" 10 has_no_block_device "$last" 2
same "it is still allocated" "$(allocated_and_active "$admin")" "1 2 / 1"
succeeds "delete all" delete_namespaces "$admin"
same "no namespace" "$(allocated_and_active "$admin")" " / "

nsid=$(restore_namespace)
same "one namespace over the whole drive" "$nsid" 1
for transport in $TRANSPORTS; do
    eventually "$transport: its block device appears" 10 has_block_device "$transport" 1
    succeeds "$transport: it reads as zeroes" is_zero "$(block_device "$transport" 1)" 0 1048576
done
