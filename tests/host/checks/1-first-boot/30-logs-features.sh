# shellcheck shell=dash
# Log pages change with the commands of the host, and features keep their values.

for transport in $TRANSPORTS; do
    admin=$(admin_device "$transport")
    device=$(block_device "$transport" 1)

    # The SMART log counts units of 1000 times 512 bytes, so each transfer has several megabytes.
    nvme smart-log "$admin" --output-format=binary >"$SCRATCH/smart-before"
    succeeds "$transport: write 8 MiB" run_fio "$device" --rw=write --bs=128k --size=8m --ioengine=psync
    succeeds "$transport: read 8 MiB" run_fio "$device" --rw=read --bs=128k --size=8m --ioengine=psync
    succeeds "$transport: nvme smart-log" nvme smart-log "$admin" --human-readable
    nvme smart-log "$admin" --output-format=binary >"$SCRATCH/smart-after"
    for counter in 32:read 48:written; do
        at=${counter%%:*}
        moved=$(($(field "$SCRATCH/smart-after" "$at" 8) - $(field "$SCRATCH/smart-before" "$at" 8)))
        # 8 MiB are 16.4 units, and the drive rounds each count up.
        at_least "$transport: data units ${counter#*:} move by 8 MiB" "$moved" 16
        at_least "$transport: and not by more" 18 "$moved"
    done
    for counter in 64:read 80:write; do
        at=${counter%%:*}
        moved=$(($(field "$SCRATCH/smart-after" "$at" 8) - $(field "$SCRATCH/smart-before" "$at" 8)))
        at_least "$transport: host ${counter#*:} commands move" "$moved" 64
    done
    same "$transport: no critical warning" "$(field "$SCRATCH/smart-after" 0 1)" 0
    same "$transport: no media errors" "$(field "$SCRATCH/smart-after" 160 8)" 0

    entries=$(field "$SCRATCH/smart-after" 176 8)
    beyond=$(($(size_of "$device") / BLOCK_BYTES))
    refused "$transport: a read beyond the end" 0x080 \
        nvme read "$device" --start-block="$beyond" --data-size="$BLOCK_BYTES" --data=/dev/null
    nvme error-log "$admin" --log-entries=1 --output-format=binary >"$SCRATCH/errors"
    at_least "$transport: the error log counts it" "$(field "$SCRATCH/errors" 0 8)" $((entries + 1))
    same "$transport: the newest entry has its status" $((($(field "$SCRATCH/errors" 12 2) >> 1) & 0x7ff)) $((0x80))
    same "$transport: its logical block" "$(field "$SCRATCH/errors" 16 8)" "$beyond"
    same "$transport: its namespace" "$(field "$SCRATCH/errors" 24 4)" 1
    succeeds "$transport: nvme error-log" nvme error-log "$admin" --log-entries=4
    nvme smart-log "$admin" --output-format=binary >"$SCRATCH/smart-after"
    at_least "$transport: the SMART log counts the entry" "$(field "$SCRATCH/smart-after" 176 8)" $((entries + 1))

    refused "$transport: a log page that there is not" 0x109 nvme get-log "$admin" --log-id=0xbe --log-len=512
    refused "$transport: a feature that there is not" 0x002 nvme get-feature "$admin" --feature-id=0xbe
    succeeds "$transport: set Timestamp" nvme set-feature "$admin" --feature-id=0xe --value=1000000000000
    nvme get-feature "$admin" --feature-id=0xe --data-len=8 --raw-binary >"$SCRATCH/timestamp"
    milliseconds=$(($(field "$SCRATCH/timestamp" 0 4) + ($(field "$SCRATCH/timestamp" 4 2) << 32)))
    at_least "$transport: Timestamp continues from the set value" $milliseconds 1000000000000
    at_least "$transport: by the elapsed time" 1000000060000 $milliseconds
    succeeds "$transport: write cache off" nvme set-feature "$admin" --feature-id=6 --value=0
    matches "$transport: it is off" "$(nvme get-feature "$admin" --feature-id=6)" "value:0*(0x)?0+\$"
    succeeds "$transport: a write without the cache" run_fio "$device" --rw=randwrite --bs=4k --size=64k --ioengine=psync
    succeeds "$transport: write cache on" nvme set-feature "$admin" --feature-id=6 --value=1
    succeeds "$transport: flush" nvme flush "$device"
done

admin=$(admin_device pcie)
# Without `--csi`, nvme-cli reads the command set from registers, which the kernel does not let it
# map.
succeeds "nvme effects-log" nvme effects-log "$admin" --csi=0
for command in fw-log changed-ns-list-log self-test-log supported-log-pages sanitize-log; do
    succeeds "nvme $command" nvme $command "$admin"
done
succeeds "nvme endurance-log" nvme endurance-log "$admin" --group-id=1
# A read at an offset of 2048 bytes returns the second half of the page.
nvme get-log "$admin" --log-id=5 --log-len=4096 --raw-binary >"$SCRATCH/whole"
nvme get-log "$admin" --log-id=5 --log-len=2048 --lpo=2048 --raw-binary >"$SCRATCH/half"
tail -c 2048 "$SCRATCH/whole" >"$SCRATCH/expected"
same "a log page read at an offset" "$(sum_of "$SCRATCH/half")" "$(sum_of "$SCRATCH/expected")"
for feature in 1 2 4 6 7 0xa 0xb 0xe 0x16; do
    succeeds "nvme get-feature $feature" nvme get-feature "$admin" --feature-id="$feature"
done
succeeds "nvme get-feature 5" nvme get-feature "$(block_device pcie 1)" --feature-id=5
