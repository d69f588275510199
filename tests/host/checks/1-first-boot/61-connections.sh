# shellcheck shell=dash
# NVMe/TCP connections that are closed, made again, use digests, are idle, or are lost.

case $TRANSPORTS in
*tcp*) ;;
*)
    skip "tcp: connections" "this boot has no NVMe/TCP"
    exit 0
    ;;
esac

reconnect_tcp() {
    connect_tcp "$@" && wait_for 10 has_block_device tcp 1
}

succeeds "disconnect" disconnect_tcp
succeeds "its controller is gone" has_no_controller tcp
rounds=0
while [ $rounds -lt 4 ] && connect_tcp --nr-io-queues=1 >/dev/null 2>&1 && disconnect_tcp >/dev/null 2>&1; do
    rounds=$((rounds + 1))
done
same "connect and disconnect repeatedly" $rounds 4

succeeds "connect with header and data digests" reconnect_tcp --hdr-digest --data-digest --nr-io-queues=2
succeeds "random mix of sizes, verified" \
    run_fio "$(block_device tcp 1)" --ioengine=io_uring --rw=randrw --bsrange=4k-64k --iodepth=8 --size=2m --verify=crc32c --verify_fatal=1
succeeds "disconnect" disconnect_tcp

succeeds "connect with short queues and a short keep alive" \
    reconnect_tcp --queue-size=16 --nr-io-queues=1 --keep-alive-tmo=2 --reconnect-delay=1
device=$(block_device tcp 1)
succeeds "more requests than the queue holds, verified" \
    run_fio "$device" --ioengine=io_uring --rw=randwrite --bs=4k --iodepth=64 --size=1m --verify=crc32c --verify_fatal=1
resets=$(dmesg | grep -c 'nvme nvme.*reconnect')
sleep 4
same "keep alive keeps an idle connection" "$(dmesg | grep -c 'nvme nvme.*reconnect') $(is_live tcp && echo live)" "$resets live"

# The link is down for longer than the keep alive timeout. Both sides must drop the connection and
# make a new one.
random_bytes 65536 >"$SCRATCH/data"
succeeds "write" write_device "$device" 4194304 <"$SCRATCH/data"
before=$(controller_identifier tcp)
ifconfig eth0 down
eventually "a lost connection is noticed" 15 sh -c "! grep -q live /sys/class/nvme/$(controller tcp)/state"
sleep 2
ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
eventually "it comes back" 20 is_live tcp
same "the drive had freed the lost controller" "$(controller_identifier tcp)" "$before"
read_device "$(block_device tcp 1)" 4194304 65536 >"$SCRATCH/back"
same "the data is there" "$(sum_of "$SCRATCH/back")" "$(sum_of "$SCRATCH/data")"

succeeds "disconnect" disconnect_tcp
refused_connect() {
    ! nvme connect -t tcp -a "$TCP_ADDRESS" -s "$TCP_PORT" -n "$(drive_nqn)-not"
}
succeeds "a subsystem that does not exist is refused" refused_connect
succeeds "connect as at the start" reconnect_tcp
