# shellcheck shell=dash
# An orderly restart of the server preserves statistics, handles, events and features.

succeeds "tcp: connect" connect_tcp
for transport in $TRANSPORTS; do
    eventually "$transport: the controller is live" 10 is_live "$transport"
    for nsid in 1 2; do
        eventually "$transport: namespace $nsid is there" 10 has_block_device "$transport" $nsid
    done
    admin=$(admin_device "$transport")
    for counter in hbmw mbmw mbe; do
        eval "expected=\$COUNT_$counter"
        # shellcheck disable=SC2154  # assigned by eval
        same "$transport: FDP statistics: $counter" "$(fdp_statistic "$admin" $counter)" "$expected"
    done
    # shellcheck disable=SC2153  # kept by the phase before
    same "$transport: handles of namespace 1" "$(handle_status "$(block_device "$transport" 1)" | tr '\n' ,)" "$HANDLES_1"
    # shellcheck disable=SC2153
    same "$transport: handles of namespace 2" "$(handle_status "$(block_device "$transport" 2)" | tr '\n' ,)" "$HANDLES_2"
    # shellcheck disable=SC2153
    same "$transport: FDP events" "$(fdp_events "$admin" host | wc -l)" "$EVENTS"
    matches "$transport: the saved feature" "$(nvme get-feature "$admin" --feature-id=4 --sel=0)" "0x0*159\$"
    matches "$transport: the enabled events" \
        "$(nvme get-feature "$(block_device "$transport" 2)" --feature-id=0x1e --cdw11=$((1 | 4 << 16)) --data-len=8 --raw-binary |
            od -A n -t x1 -v)" "^ 00 01 "
    nvme smart-log "$admin" --output-format=binary >"$SCRATCH/smart"
    at_least "$transport: power cycles" "$(field "$SCRATCH/smart" 112 8)" 2
    same "$transport: unsafe shutdowns" "$(field "$SCRATCH/smart" 144 8)" 0
done
