# shellcheck shell=dash
# Identify data structures, checked as bytes and not as the output of a tool.

# `check_controller TRANSPORT FILE` checks fields of Identify Controller.
check_controller() {
    local transport=$1 file=$2 command
    same "$transport: Identify Controller has 4096 bytes" "$(wc -c <"$file")" 4096
    same "$transport: serial number" "$(characters "$file" 4 20)" "$SERIAL"
    same "$transport: controller identifier (CNTLID)" "$(field "$file" 78 2)" "$(controller_identifier "$transport")"
    at_least "$transport: version is 2.0 or later" "$(field "$file" 80 4)" $((0x20000))
    same "$transport: endurance groups (CTRATT bit 4)" "$(bit "$file" 96 4 4)" 1
    same "$transport: Flexible Data Placement (CTRATT bit 19)" "$(bit "$file" 96 4 19)" 1
    same "$transport: Format (OACS bit 1)" "$(bit "$file" 256 2 1)" 1
    same "$transport: Namespace Management (OACS bit 3)" "$(bit "$file" 256 2 3)" 1
    same "$transport: directives (OACS bit 5)" "$(bit "$file" 256 2 5)" 1
    same "$transport: one endurance group (ENDGIDMAX)" "$(field "$file" 340 2)" 1
    same "$transport: entry sizes of queues (SQES, CQES)" "$(field "$file" 512 2)" $((0x4466))
    at_least "$transport: namespaces (NN)" "$(field "$file" 516 4)" 2
    for command in 0:Compare 1:"Write Uncorrectable" 2:"Dataset Management" 3:"Write Zeroes" 7:Verify 8:Copy; do
        same "$transport: ${command#*:} (ONCS bit ${command%%:*})" "$(bit "$file" 520 2 "${command%%:*}")" 1
    done
    same "$transport: volatile write cache (VWC)" "$(bit "$file" 525 1 0)" 1
    same "$transport: NVM subsystem NQN" "$(head -c 1024 "$file" | tail -c 256 | tr -d '\0')" "$(drive_nqn)"
}

# `check_namespace DEVICE FILE` checks fields of Identify Namespace.
check_namespace() {
    local device=$1 file=$2 blocks format
    blocks=$(($(size_of "$device") / BLOCK_BYTES))
    same "namespace size (NSZE)" "$(field "$file" 0 8)" "$blocks"
    same "namespace capacity (NCAP)" "$(field "$file" 8 8)" "$blocks"
    format=$(($(field "$file" 26 1) & 15))
    same "the block size is that of the current format" $((1 << $(field "$file" $((128 + 4 * format + 2)) 1))) "$BLOCK_BYTES"
    same "number of LBA formats (NLBAF, 0's based)" "$(field "$file" 25 1)" 3
    same "LBA formats (log2 of data bytes, bytes of metadata)" \
        "$(od -A n -v -t u2 -w4 -j 128 -N 16 "$file" | awk '{ printf "%d+%d ", $2 % 256, $1 }')" "$FORMATS "
    same "no protection information (DPC, DPS)" "$(field "$file" 28 2)" 0
    same "endurance group of the namespace" "$(field "$file" 102 2)" 1
    differs "globally unique identifier (NGUID)" "$(field "$file" 104 8) $(field "$file" 112 8)" "0 0"
    succeeds "nvme ns-descs" nvme ns-descs "$device"
    same "its NGUID is the same" "$(sed -n 's/^nguid *: *//p' "$SCRATCH/output" | tr -d -)" \
        "$(od -A n -v -t x1 -j 104 -N 16 "$file" | tr -d ' \n')"
}

for transport in $TRANSPORTS; do
    admin=$(admin_device "$transport")
    device=$(block_device "$transport" 1)
    nvme id-ctrl "$admin" --output-format=binary >"$SCRATCH/controller"
    check_controller "$transport" "$SCRATCH/controller"
    nvme id-ns "$device" --output-format=binary >"$SCRATCH/namespace"
    [ "$transport" != pcie ] || cp "$SCRATCH/namespace" "$SCRATCH/namespace-pcie"
    # Metadata capabilities (MC, byte 27) depend on the transport. All other bytes are equal.
    same "$transport: Identify Namespace says the same as through pcie" \
        "$(head -c 27 "$SCRATCH/namespace" | od -A n -v -t x1) $(tail -c +29 "$SCRATCH/namespace" | sha256sum)" \
        "$(head -c 27 "$SCRATCH/namespace-pcie" | od -A n -v -t x1) $(tail -c +29 "$SCRATCH/namespace-pcie" | sha256sum)"

    nvme admin-passthru "$admin" --opcode=6 --namespace-id=1 --cdw10=8 --data-len=4096 --read --raw-binary \
        >"$SCRATCH/independent" 2>/dev/null
    same "$transport: endurance group in the command set independent structure" "$(field "$SCRATCH/independent" 12 2)" 1
    same "$transport: namespace is ready" "$(bit "$SCRATCH/independent" 14 1 0)" 1
    same "$transport: active namespaces" "$(namespaces "$admin")" 1
    same "$transport: allocated namespaces" "$(namespaces "$admin" --all)" 1
    succeeds "$transport: nvme list-ctrl" nvme list-ctrl "$admin"
    listed=$(cut -d : -f 2 "$SCRATCH/output" | while read -r id; do echo $((id)); done)
    matches "$transport: it lists this controller" "$listed" "^$(controller_identifier "$transport")\$"

    refused "$transport: Identify of a namespace beyond NN" 0x00b nvme id-ns "$admin" --namespace-id=$((0x10000))
    refused "$transport: Identify with a CNS that there is not" 0x002 \
        nvme admin-passthru "$admin" --opcode=6 --cdw10=0xef --data-len=4096 --read
    refused "$transport: an admin command that there is not" 0x001 nvme admin-passthru "$admin" --opcode=0x77
    refused "$transport: an I/O command that there is not" 0x001 nvme io-passthru "$device" --opcode=0x7d --namespace-id=1
done

check_namespace "$(block_device pcie 1)" "$SCRATCH/namespace-pcie"
for command in "id-ctrl --human-readable" list-endgrp nvm-id-ctrl id-iocs; do
    # shellcheck disable=SC2086  # a command with its options
    succeeds "nvme $command" nvme $command "$(admin_device pcie)"
done
for command in "id-ns --human-readable" nvm-id-ns cmdset-ind-id-ns; do
    # shellcheck disable=SC2086
    succeeds "nvme $command" nvme $command "$(block_device pcie 1)"
done
