# shellcheck shell=dash
# Sanitize deletes all data and reports its progress in the log. Block erase runs through one
# transport, and crypto erase through the other.

sanitize_status() { # ADMIN-DEVICE
    nvme get-log "$1" --log-id=0x81 --log-len=512 --raw-binary >"$SCRATCH/sanitize" || return 1
    echo $(($(field "$SCRATCH/sanitize" 2 2) & 7))
}
is_sanitized() { # ADMIN-DEVICE
    [ "$(sanitize_status "$1")" = 1 ]
}

sanitize() { # TRANSPORT ACTION
    local transport=$1 action=$2 admin device other
    admin=$(admin_device "$transport")
    device=$(block_device "$transport" 1)
    random_bytes 65536 >"$SCRATCH/data"
    succeeds "$transport: write" write_device "$device" 1048576 <"$SCRATCH/data"
    succeeds "$transport: nvme sanitize, action $action" nvme sanitize "$admin" --sanact="$action"
    eventually "$transport: it succeeds" 30 is_sanitized "$admin"
    same "$transport: progress is complete (SPROG)" "$(field "$SCRATCH/sanitize" 0 2)" 65535
    same "$transport: the log names the action (SCDW10)" $(($(field "$SCRATCH/sanitize" 4 4) & 7)) "$action"
    succeeds "$transport: nvme sanitize-log" nvme sanitize-log "$admin" --human-readable
    for other in $TRANSPORTS; do
        eventually "$other: the namespace is there" 10 has_block_device "$other" 1
        succeeds "$other: the data is gone" is_zero "$(block_device "$other" 1)" 1048576 65536
    done
    succeeds "$transport: it takes writes again, verified" \
        run_fio "$device" --ioengine=io_uring --rw=randwrite --bs=4k --size=256k --verify=crc32c --verify_fatal=1
}

sanitize "${TRANSPORTS%% *}" 2
sanitize "${TRANSPORTS##* }" 4
refused "an action that there is not" 0x002 nvme admin-passthru "$(admin_device pcie)" --opcode=0x84 --cdw10=7
