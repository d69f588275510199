# shellcheck shell=dash
# I/O commands other than Read and Write, with the errors that the standard defines for them.

# `blocks_command COMMAND BLOCK BLOCKS FILE` runs an nvme command with a data file on $device.
blocks_command() {
    nvme "$1" "$device" --start-block="$2" --block-count=$(($3 - 1)) --data-size=$(($3 * BLOCK_BYTES)) --data="$4"
}

# `holds BLOCK BLOCKS FILE` succeeds if blocks have the content of a file.
holds() {
    rm -f "$SCRATCH/found"
    blocks_command read "$1" "$2" "$SCRATCH/found" >/dev/null && cmp "$SCRATCH/found" "$3"
}

region=65536
for transport in $TRANSPORTS; do
    device=$(block_device "$transport" 1)
    end=$(($(size_of "$device") / BLOCK_BYTES))
    region=$((region + 1024))
    random_bytes $((16 * BLOCK_BYTES)) >"$SCRATCH/data"
    head -c "$BLOCK_BYTES" "$SCRATCH/data" >"$SCRATCH/block"
    head -c $((16 * BLOCK_BYTES)) /dev/zero >"$SCRATCH/zeroes"
    head -c "$BLOCK_BYTES" /dev/zero >"$SCRATCH/zero"
    succeeds "$transport: write" blocks_command write $region 16 "$SCRATCH/data"
    succeeds "$transport: read it" holds $region 16 "$SCRATCH/data"
    refused "$transport: write beyond the end" 0x080 blocks_command write "$end" 1 "$SCRATCH/block"
    refused "$transport: write across the end" 0x080 blocks_command write $((end - 15)) 16 "$SCRATCH/data"

    succeeds "$transport: compare with the same" blocks_command compare $region 16 "$SCRATCH/data"
    refused "$transport: compare with something else" 0x285 blocks_command compare $region 16 "$SCRATCH/zeroes"
    succeeds "$transport: verify" nvme verify "$device" --start-block=$region --block-count=15
    refused "$transport: verify beyond the end" 0x080 nvme verify "$device" --start-block="$end" --block-count=0

    succeeds "$transport: copy" nvme copy "$device" --sdlba=$((region + 64)) --slbs=$((region + 8)),$region --blocks=7,7 --format=0
    tail -c $((8 * BLOCK_BYTES)) "$SCRATCH/data" >"$SCRATCH/expected"
    head -c $((8 * BLOCK_BYTES)) "$SCRATCH/data" >>"$SCRATCH/expected"
    succeeds "$transport: both ranges were copied" holds $((region + 64)) 16 "$SCRATCH/expected"
    refused "$transport: copy onto itself" 0x187 \
        nvme copy "$device" --sdlba=$((region + 4)) --slbs=$region --blocks=7 --format=0
    refused "$transport: copy beyond the end" 0x080 nvme copy "$device" --sdlba="$end" --slbs=$region --blocks=7 --format=0
    refused "$transport: copy from beyond the end" 0x080 nvme copy "$device" --sdlba=$region --slbs="$end" --blocks=7 --format=0

    succeeds "$transport: dsm deallocates" nvme dsm "$device" --ad --slbs=$((region + 2)),$((region + 9)) --blocks=2,3
    {
        head -c $((2 * BLOCK_BYTES)) "$SCRATCH/data"
        head -c $((2 * BLOCK_BYTES)) /dev/zero
        head -c $((9 * BLOCK_BYTES)) "$SCRATCH/data" | tail -c $((5 * BLOCK_BYTES))
        head -c $((3 * BLOCK_BYTES)) /dev/zero
        tail -c $((4 * BLOCK_BYTES)) "$SCRATCH/data"
    } >"$SCRATCH/expected"
    succeeds "$transport: they read as zeroes and their neighbours are there" holds $region 16 "$SCRATCH/expected"
    refused "$transport: dsm beyond the end" 0x080 nvme dsm "$device" --ad --slbs="$end" --blocks=1

    succeeds "$transport: write again" blocks_command write $region 16 "$SCRATCH/data"
    succeeds "$transport: write zeroes" nvme write-zeroes "$device" --start-block=$region --block-count=3
    succeeds "$transport: write zeroes and deallocate" nvme write-zeroes "$device" --start-block=$((region + 4)) --block-count=3 --deac
    {
        head -c $((8 * BLOCK_BYTES)) /dev/zero
        tail -c $((8 * BLOCK_BYTES)) "$SCRATCH/data"
    } >"$SCRATCH/expected"
    succeeds "$transport: both read as zeroes and the rest is there" holds $region 16 "$SCRATCH/expected"
    refused "$transport: write zeroes beyond the end" 0x080 nvme write-zeroes "$device" --start-block="$end" --block-count=0

    succeeds "$transport: write again" blocks_command write $region 16 "$SCRATCH/data"
    succeeds "$transport: write uncorrectable" nvme write-uncor "$device" --start-block=$((region + 5)) --block-count=0
    refused "$transport: read of it" 0x281 blocks_command read $region 16 /dev/null
    nvme error-log "$(admin_device "$transport")" --log-entries=1 --output-format=binary >"$SCRATCH/errors"
    same "$transport: the error log names the block" "$(field "$SCRATCH/errors" 16 8)" $((region + 5))
    refused "$transport: verify of it" 0x281 nvme verify "$device" --start-block=$region --block-count=15
    refused "$transport: compare of it" 0x281 blocks_command compare $region 16 "$SCRATCH/data"
    refused "$transport: copy of it" 0x281 nvme copy "$device" --sdlba=$((region + 64)) --slbs=$region --blocks=15 --format=0
    head -c $((5 * BLOCK_BYTES)) "$SCRATCH/data" >"$SCRATCH/expected"
    succeeds "$transport: the blocks before it can be read" holds $region 5 "$SCRATCH/expected"
    tail -c $((10 * BLOCK_BYTES)) "$SCRATCH/data" >"$SCRATCH/expected"
    succeeds "$transport: the blocks behind it can be read" holds $((region + 6)) 10 "$SCRATCH/expected"
    succeeds "$transport: a write repairs it" blocks_command write $((region + 5)) 1 "$SCRATCH/block"
    succeeds "$transport: and it can be read" holds $((region + 5)) 1 "$SCRATCH/block"
done
