# shellcheck shell=dash
# Controller resets with and without I/O, removal of the PCI device, and the recovery of the kernel.

# The writer's rate is limited, so it is still at work during the last reset.
reset_under_load() { # TRANSPORT MEBIBYTES RESETS
    local transport=$1 mebibytes=$2 resets=$3 device admin writer
    device=$(block_device "$transport" 1)
    admin=$(admin_device "$transport")
    run_fio "$device" --ioengine=io_uring --rw=randwrite --bs=4k --iodepth=8 --size="${mebibytes}m" --offset=512m \
        --rate_iops=$((mebibytes * 256 / 4)) --verify=crc32c --verify_fatal=1 >"$SCRATCH/writer" 2>&1 &
    writer=$!
    while [ "$resets" -gt 0 ]; do
        sleep 0.5
        kill -0 $writer || { echo "the writer was done too early" && return 1; }
        nvme reset "$admin" || return 1
        wait_for 15 is_live "$transport" || return 1
        resets=$((resets - 1))
    done
    wait $writer || { cat "$SCRATCH/writer" && return 1; }
}

for transport in $TRANSPORTS; do
    admin=$(admin_device "$transport")
    random_bytes 65536 >"$SCRATCH/data"
    succeeds "$transport: write" write_device "$(block_device "$transport" 1)" 4194304 <"$SCRATCH/data"
    succeeds "$transport: nvme reset" nvme reset "$admin"
    eventually "$transport: it is live again" 15 is_live "$transport"
    read_device "$(block_device "$transport" 1)" 4194304 65536 >"$SCRATCH/back"
    same "$transport: the data is there" "$(sum_of "$SCRATCH/back")" "$(sum_of "$SCRATCH/data")"
    case $transport in pcie) size=16 ;; *) size=2 ;; esac
    succeeds "$transport: resets under I/O; every write is verified" reset_under_load "$transport" $size 2
done

path=/sys/class/nvme/$(controller pcie)
address=$(basename "$(readlink -f "$path/device")")
if [ -e "$path/device/reset" ]; then
    succeeds "pcie: function level reset" sh -c "echo 1 >$path/device/reset"
    eventually "pcie: it is live again" 15 is_live pcie
    read_device "$(block_device pcie 1)" 4194304 65536 >"$SCRATCH/back"
    succeeds "pcie: it can be read" run_fio "$(block_device pcie 1)" --ioengine=io_uring --rw=randread --bs=4k --size=1m
else
    skip "pcie: function level reset" "the device has no such capability"
fi

random_bytes 65536 >"$SCRATCH/data"
succeeds "pcie: write" write_device "$(block_device pcie 1)" 8388608 <"$SCRATCH/data"
succeeds "pcie: remove the device" sh -c "echo 1 >/sys/bus/pci/devices/$address/remove"
eventually "pcie: the controller is gone" 10 has_no_controller pcie
succeeds "pcie: rescan the bus" sh -c "echo 1 >/sys/bus/pci/rescan"
eventually "pcie: the controller is back" 15 is_live pcie
eventually "pcie: the namespace is back" 15 has_block_device pcie 1
read_device "$(block_device pcie 1)" 8388608 65536 >"$SCRATCH/back"
same "pcie: and the data" "$(sum_of "$SCRATCH/back")" "$(sum_of "$SCRATCH/data")"
