# shellcheck shell=dash
# The kernel finds the drive through both transports and sees the same properties.

for transport in $TRANSPORTS; do
    if [ "$transport" = tcp ]; then
        succeeds "tcp: discover" nvme discover -t tcp -a "$TCP_ADDRESS" -s "$TCP_PORT"
        nqn=$(drive_nqn)
        same "tcp: discovery lists the drive once" "$(grep -c "^subnqn: *$nqn\$" "$SCRATCH/output")" 1
        same "tcp: discovery gives the port" "$(sed -n 's/^trsvcid: *//p' "$SCRATCH/output")" "$TCP_PORT"
        succeeds "tcp: connect" connect_tcp
    fi
    eventually "$transport: the controller is live" 10 is_live "$transport"
    eventually "$transport: namespace 1 is there" 10 has_block_device "$transport" 1
    path=/sys/class/nvme/$(controller "$transport")
    device=$(block_device "$transport" 1)
    same "$transport: serial number" "$(value_of "$path/serial")" "$SERIAL"
    differs "$transport: model number" "$(value_of "$path/model")" ""
    differs "$transport: firmware revision" "$(value_of "$path/firmware_rev")" ""
    at_least "$transport: I/O queues" "$(($(value_of "$path/queue_count") - 1))" 2
    same "$transport: size of namespace 1" "$(size_of "$device")" "$CAPACITY_BYTES"
    same "$transport: logical blocks" "$(queue_limit "$device" logical_block_size)" "$BLOCK_BYTES"
    same "$transport: write streams" "$(queue_limit "$device" max_write_streams)" 8
    same "$transport: granularity of write streams is the reclaim unit" \
        "$(queue_limit "$device" write_stream_granularity)" "$(reclaim_unit_bytes "$(admin_device "$transport")")"
    at_least "$transport: discard" "$(queue_limit "$device" discard_max_bytes)" 4096
    at_least "$transport: largest transfer" "$(queue_limit "$device" max_hw_sectors_kb)" 128
    # The partition scan has read the first blocks. Nothing was ever written.
    succeeds "$transport: the new drive reads as zeroes" is_zero "$device" 0 1048576
done

if [ "$TRANSPORTS" = "pcie tcp" ]; then
    for name in model firmware_rev subsysnqn; do
        same "both transports: $name" "$(value_of "/sys/class/nvme/$(controller tcp)/$name")" \
            "$(value_of "/sys/class/nvme/$(controller pcie)/$name")"
    done
    differs "the controllers have different identifiers" "$(controller_identifier pcie)" "$(controller_identifier tcp)"
fi

succeeds "nvme list" nvme list
matches "nvme list shows the drive" "$(cat "$SCRATCH/output")" "$SERIAL"
succeeds "nvme list, all of it" nvme list --verbose
succeeds "nvme list as JSON" nvme list --output-format=json
succeeds "nvme list-subsys" nvme list-subsys
succeeds "nvme show-topology" nvme show-topology
