# shellcheck shell=dash
# Each command of `nvme fdp`, with the bytes that it decodes.

write_4k() { # DEVICE BLOCK PID
    head -c "$BLOCK_BYTES" /dev/zero | tr '\0' x >"$SCRATCH/block"
    nvme write "$1" --start-block="$2" --block-count=0 --data-size="$BLOCK_BYTES" --data="$SCRATCH/block" --dir-type=2 --dir-spec="$3"
}

for transport in $TRANSPORTS; do
    admin=$(admin_device "$transport")
    device=$(block_device "$transport" 1)
    unit_blocks=$(($(reclaim_unit_bytes "$admin") / BLOCK_BYTES))

    succeeds "$transport: nvme fdp configs" nvme fdp configs "$admin" --endgrp-id=1 --human-readable
    nvme fdp configs "$admin" --endgrp-id=1 --raw-binary >"$SCRATCH/configs"
    same "$transport: configurations: the page has the size that its header says" \
        "$(field "$SCRATCH/configs" 4 4)" "$(wc -c <"$SCRATCH/configs")"
    same "$transport: the first is valid (FDPA)" "$(bit "$SCRATCH/configs" 18 1 7)" 1
    same "$transport: handles (NRUH)" "$(field "$SCRATCH/configs" 24 2)" 8
    same "$transport: reclaim groups (NRG)" "$(field "$SCRATCH/configs" 20 4)" 1
    at_least "$transport: placement identifiers (MAXPIDS, 0's based)" "$(field "$SCRATCH/configs" 26 2)" 7
    same "$transport: handle 0 is initially isolated" "$(field "$SCRATCH/configs" 80 1)" 1

    succeeds "$transport: nvme fdp usage" nvme fdp usage "$admin" --endgrp-id=1
    nvme fdp usage "$admin" --endgrp-id=1 --raw-binary >"$SCRATCH/usage"
    same "$transport: usage: handles" "$(field "$SCRATCH/usage" 0 2)" 8
    for handle in 0 7; do
        differs "$transport: usage: handle $handle is used" "$(field "$SCRATCH/usage" $((8 + 8 * handle)) 1)" 0
    done

    succeeds "$transport: nvme fdp stats" nvme fdp stats "$admin" --endgrp-id=1
    same "$transport: it prints the value of the log" "$(sed -n 's/.*(HBMW): //p' "$SCRATCH/output")" "$(fdp_statistic "$admin" hbmw)"
    before=$(fdp_statistic "$admin" hbmw)
    succeeds "$transport: write a block" write_4k "$device" 0 0
    same "$transport: HBMW counts it" $(($(fdp_statistic "$admin" hbmw) - before)) "$BLOCK_BYTES"
    at_least "$transport: MBMW is at least HBMW" "$(fdp_statistic "$admin" mbmw)" $((before + BLOCK_BYTES))

    succeeds "$transport: nvme fdp status" nvme fdp status "$device"
    same "$transport: status: identifiers and handles" \
        "$(handle_status "$device" | cut -d ' ' -f 1,2 | tr '\n' ,)" "0 0,1 1,2 2,3 3,4 4,5 5,6 6,7 7,"
    nvme io-mgmt-recv "$device" --mo=1 --data-len=16 --data="$SCRATCH/header" >/dev/null 2>&1
    same "$transport: status: the header alone counts all descriptors" "$(field "$SCRATCH/header" 14 2)" 8

    before=$(handle_status "$device")
    succeeds "$transport: write a block through identifier 3" write_4k "$device" 1 3
    same "$transport: its handle moves by a block, no other does" "$(moved_handles "$before" "$(handle_status "$device")" "$unit_blocks")" 3:1

    succeeds "$transport: nvme fdp set-events" \
        nvme fdp set-events "$device" --placement-handle=3 --event-types=0,3 --enable
    matches "$transport: nvme get-feature 1Eh shows them" \
        "$(nvme get-feature "$device" --feature-id=0x1e --cdw11=$((3 | 4 << 16)) --data-len=8 --raw-binary | od -A n -t x1 -v)" \
        "^ 00 01 .*03 01"
    succeeds "$transport: nvme fdp set-events of the default handle" \
        nvme fdp set-events "$device" --placement-handle=0 --event-types=0,3 --enable
    printf '\003\000' >"$SCRATCH/identifiers"
    succeeds "$transport: update identifier 3 (I/O Management Send)" \
        nvme io-mgmt-send "$device" --mo=1 --mos=0 --data-len=2 --data="$SCRATCH/identifiers"
    same "$transport: its reclaim unit is a new one" "$(handle_status "$device" | awk '$1 == 3 { print $3 }')" "$unit_blocks"
    same "$transport: the event says that the old one was not full" \
        "$(fdp_events "$admin" host | tail -n 1 | cut -d ' ' -f 1-5)" "0 1 3 1 3"
    succeeds "$transport: nvme fdp update" nvme fdp update "$device" --pids=0
    succeeds "$transport: a write with an identifier that does not exist" write_4k "$device" 2 200
    same "$transport: the event names it" "$(fdp_events "$admin" host | tail -n 1 | cut -d ' ' -f 1-4)" "3 1 200 1"
    succeeds "$transport: nvme fdp events, host" nvme fdp events "$admin" --endgrp-id=1 --host-events
    matches "$transport: it prints the invalid identifier" "$(cat "$SCRATCH/output")" "Placement Identifier.*(200|0xc8)"
    succeeds "$transport: nvme fdp events, controller" nvme fdp events "$admin" --endgrp-id=1
    succeeds "$transport: events off" nvme fdp set-events "$device" --placement-handle=0 --event-types=0,3
    before=$(fdp_events "$admin" host | wc -l)
    succeeds "$transport: the same write again" write_4k "$device" 2 200
    same "$transport: no event when they are off" "$(fdp_events "$admin" host | wc -l)" "$before"

    succeeds "$transport: nvme fdp feature" nvme fdp feature "$admin" --endgrp-id=1
    matches "$transport: it is on" "$(cat "$SCRATCH/output")" "Enable.*[Yy]es"
    succeeds "$transport: nvme get-feature 1Dh" nvme get-feature "$admin" --feature-id=0x1d --cdw11=1 --human-readable
    matches "$transport: its value" "$(nvme get-feature "$admin" --feature-id=0x1d --cdw11=1)" "value:(0x)?0*1\$"
    refused "$transport: switching off while there is a namespace" 0x00c nvme fdp feature "$admin" --endgrp-id=1 --disable
    refused "$transport: statistics of an endurance group that there is not" 0x002 nvme fdp stats "$admin" --endgrp-id=9
    printf '\144\000' >"$SCRATCH/identifiers"
    refused "$transport: update of an identifier that there is not" 0x002 \
        nvme io-mgmt-send "$device" --mo=1 --mos=0 --data-len=2 --data="$SCRATCH/identifiers"
    nvme dir-receive "$device" --namespace-id=1 --dir-type=0 --dir-oper=1 --data-len=4096 --raw-binary >"$SCRATCH/directives" 2>/dev/null
    same "$transport: the data placement directive is supported and enabled" \
        "$(bit "$SCRATCH/directives" 0 1 2) $(bit "$SCRATCH/directives" 32 1 2)" "1 1"
done
