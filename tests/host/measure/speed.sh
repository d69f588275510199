# shellcheck shell=dash
# Runs fio on WARP's drive and on QEMU's own by turns in one guest, and prints a table of IOPS with
# their ratio.
#
# Parameters are ROUNDS and RUN_SECONDS. Each cell is the median of ROUNDS runs.

# `requests_per_second DEVICE READ-OR-WRITE DEPTH` prints IOPS.
requests_per_second() {
    fio --name=speed --filename="$1" --direct=1 --thread --ioengine=io_uring --rw="rand$2" --bs=4k --iodepth="$3" \
        --size=64m --time_based --ramp_time=1 --runtime="$RUN_SECONDS" --minimal | awk -F ';' '{ printf "%d\n", $8 + $49 }'
}

median() {
    sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

# `device_of SERIAL` prints the block device of a controller.
device_of() {
    local path
    for path in /sys/class/nvme/nvme*; do
        [ "$(tr -d ' ' <"$path/serial")" != "$1" ] || echo "/dev/$(basename "$path")n1"
    done
}

ours=$(device_of "$SERIAL")
qemus=$(device_of QEMU)
for device in $ours $qemus; do
    fio --name=fill --filename="$device" --direct=1 --thread --ioengine=io_uring --rw=write --bs=128k --iodepth=4 --size=64m \
        --output=/dev/null
done
round=0
while [ $round -lt "$ROUNDS" ]; do
    for depth in 1 16; do
        for direction in read write; do
            requests_per_second "$ours" $direction $depth >>"/tmp/ours-$direction-$depth"
            requests_per_second "$qemus" $direction $depth >>"/tmp/qemus-$direction-$depth"
        done
    done
    round=$((round + 1))
done
echo "| 4 KiB, random | warp serve, vfio-user | QEMU's nvme | ratio |"
echo "|---|---|---|---|"
for depth in 1 16; do
    for direction in read write; do
        one=$(median <"/tmp/ours-$direction-$depth")
        other=$(median <"/tmp/qemus-$direction-$depth")
        echo "| $direction QD $depth | $one IOPS | $other IOPS | $(awk -v a="$one" -v b="$other" 'BEGIN { printf "%.2f", a / b }') |"
    done
done
