# shellcheck shell=dash
# Identify: what the drive claims about itself, read from the bytes and not from a tool's words.

for transport in $TRANSPORTS; do
    admin=$(admin_device "$transport")
    device=$(block_device "$transport" 1)

    succeeds "$transport: nvme id-ctrl" nvme id-ctrl "$admin" --human-readable
    nvme id-ctrl "$admin" --output-format=binary >"$SCRATCH/controller"
    same "$transport: Identify Controller has 4096 bytes" "$(wc -c <"$SCRATCH/controller")" 4096
    same "$transport: serial number" "$(characters "$SCRATCH/controller" 4 20)" "$SERIAL"
    same "$transport: controller identifier (CNTLID)" "$(field "$SCRATCH/controller" 78 2)" \
        "$(controller_identifier "$transport")"
    at_least "$transport: version is 2.0 or later" "$(field "$SCRATCH/controller" 80 4)" $((0x20000))
    same "$transport: endurance groups (CTRATT bit 4)" "$(bit "$SCRATCH/controller" 96 4 4)" 1
    same "$transport: Flexible Data Placement (CTRATT bit 19)" "$(bit "$SCRATCH/controller" 96 4 19)" 1
    same "$transport: Format (OACS bit 1)" "$(bit "$SCRATCH/controller" 256 2 1)" 1
    same "$transport: Namespace Management (OACS bit 3)" "$(bit "$SCRATCH/controller" 256 2 3)" 1
    same "$transport: directives (OACS bit 5)" "$(bit "$SCRATCH/controller" 256 2 5)" 1
    same "$transport: one endurance group (ENDGIDMAX)" "$(field "$SCRATCH/controller" 340 2)" 1
    same "$transport: entry sizes of queues (SQES, CQES)" "$(field "$SCRATCH/controller" 512 2)" $((0x4466))
    at_least "$transport: namespaces (NN)" "$(field "$SCRATCH/controller" 516 4)" 2
    for command in 0:Compare 1:"Write Uncorrectable" 2:"Dataset Management" 3:"Write Zeroes" 7:Verify 8:Copy; do
        same "$transport: ${command#*:} (ONCS bit ${command%%:*})" "$(bit "$SCRATCH/controller" 520 2 "${command%%:*}")" 1
    done
    same "$transport: volatile write cache (VWC)" "$(bit "$SCRATCH/controller" 525 1 0)" 1
    same "$transport: NVM subsystem NQN" "$(head -c 1024 "$SCRATCH/controller" | tail -c 256 | tr -d '\0')" "$(drive_nqn)"

    succeeds "$transport: nvme id-ns" nvme id-ns "$device" --human-readable
    nvme id-ns "$device" --output-format=binary >"$SCRATCH/namespace"
    blocks=$(($(size_of "$device") / BLOCK_BYTES))
    same "$transport: namespace size (NSZE)" "$(field "$SCRATCH/namespace" 0 8)" "$blocks"
    same "$transport: namespace capacity (NCAP)" "$(field "$SCRATCH/namespace" 8 8)" "$blocks"
    format=$(($(field "$SCRATCH/namespace" 26 1) & 15))
    same "$transport: the block size is that of the current format" \
        $((1 << $(field "$SCRATCH/namespace" $((128 + 4 * format + 2)) 1))) "$BLOCK_BYTES"
    same "$transport: LBA formats (log2 of data bytes, bytes of metadata)" \
        "$(od -A n -v -t u2 -w4 -j 128 -N 16 "$SCRATCH/namespace" | awk '{ printf "%d+%d ", $2 % 256, $1 }')" "$FORMATS "
    same "$transport: number of LBA formats (NLBAF, 0's based)" "$(field "$SCRATCH/namespace" 25 1)" 3
    same "$transport: no protection information (DPC, DPS)" "$(field "$SCRATCH/namespace" 28 2)" 0
    same "$transport: endurance group of the namespace" "$(field "$SCRATCH/namespace" 102 2)" 1
    differs "$transport: globally unique identifier (NGUID)" \
        "$(field "$SCRATCH/namespace" 104 8) $(field "$SCRATCH/namespace" 112 8)" "0 0"

    nvme admin-passthru "$admin" --opcode=6 --namespace-id=1 --cdw10=8 --data-len=4096 --read --raw-binary \
        >"$SCRATCH/independent" 2>/dev/null
    same "$transport: endurance group in the command set independent data structure" \
        "$(field "$SCRATCH/independent" 12 2)" 1
    same "$transport: namespace is ready" "$(bit "$SCRATCH/independent" 14 1 0)" 1

    same "$transport: active namespaces" "$(namespaces "$admin")" 1
    same "$transport: allocated namespaces" "$(namespaces "$admin" --all)" 1
    succeeds "$transport: nvme list-ctrl" nvme list-ctrl "$admin"
    listed=$(cut -d : -f 2 "$SCRATCH/output" | while read -r id; do echo $((id)); done)
    matches "$transport: it lists this controller" "$listed" "^$(controller_identifier "$transport")\$"
    succeeds "$transport: nvme ns-descs" nvme ns-descs "$device"
    same "$transport: identifiers are of 16 bytes and agree with NGUID" \
        "$(sed -n 's/^nguid *: *//p' "$SCRATCH/output" | tr -d -)" \
        "$(od -A n -v -t x1 -j 104 -N 16 "$SCRATCH/namespace" | tr -d ' \n')"
    succeeds "$transport: nvme list-endgrp" nvme list-endgrp "$admin"
    for command in nvm-id-ctrl id-iocs; do
        succeeds "$transport: nvme $command" nvme $command "$admin"
    done
    for command in nvm-id-ns cmdset-ind-id-ns; do
        succeeds "$transport: nvme $command" nvme $command "$device"
    done

    refused "$transport: Identify of a namespace beyond NN" 0x00b nvme id-ns "$admin" --namespace-id=$((0x10000))
    refused "$transport: Identify with a CNS that there is not" 0x002 \
        nvme admin-passthru "$admin" --opcode=6 --cdw10=0xef --data-len=4096 --read
    refused "$transport: an admin command that there is not" 0x001 nvme admin-passthru "$admin" --opcode=0x77
    refused "$transport: an I/O command that there is not" 0x001 \
        nvme io-passthru "$device" --opcode=0x7d --namespace-id=1
done
