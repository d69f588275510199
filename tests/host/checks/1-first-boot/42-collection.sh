# shellcheck shell=dash
# Garbage collection from the host's view: write amplification in the statistics, Media Reallocated
# events, and unharmed data.

transport=${TRANSPORTS%% *}
admin=$(admin_device "$transport")
device=$(block_device "$transport" 1)
generic=$(generic_device "$transport" 1)
write_all="--ioengine=io_uring_cmd --cmd_type=nvme --bs=128k --iodepth=8 --dataplacement=fdp"

succeeds "enable Media Reallocated" nvme fdp set-events "$device" --placement-handle=1 --event-types=128 --enable
written=$(fdp_statistic "$admin" hbmw)
media=$(fdp_statistic "$admin" mbmw)
erased=$(fdp_statistic "$admin" mbe)
# shellcheck disable=SC2086  # options
succeeds "fill the drive" run_fio "$generic" $write_all --rw=write --plids=1
succeeds "write the data that stays" run_fio "$device" --ioengine=io_uring --rw=randwrite --bs=64k --iodepth=8 --offset=0 --size=32m \
    --verify=crc32c --do_verify=0 --randseed=7
# shellcheck disable=SC2086  # options
succeeds "overwrite the rest at random" run_fio "$generic" $write_all --rw=randwrite --norandommap --offset=32m --io_size=320m --plids=1
written=$(($(fdp_statistic "$admin" hbmw) - written))
media=$(($(fdp_statistic "$admin" mbmw) - media))
same "HBMW counts all of it" "$written" $(($(size_of "$device") + (32 + 320) * 1048576))
at_least "MBMW shows garbage collection" "$media" $((written + written / 50))
at_least "MBE shows erased reclaim units" $(($(fdp_statistic "$admin" mbe) - erased)) $((64 * 1048576))
event=$(fdp_events "$admin" controller | tail -n 1)
same "Media Reallocated for the namespace" "$(echo "$event" | cut -d ' ' -f 1,4)" "128 1"
at_least "its logical block is on the drive" $(($(size_of "$device") / BLOCK_BYTES - 1)) "$(echo "$event" | cut -d ' ' -f 6)"
succeeds "the data that stays is unchanged" run_fio "$device" --ioengine=io_uring --rw=randwrite --bs=64k --iodepth=8 --offset=0 --size=32m \
    --verify=crc32c --verify_only --randseed=7
echo "# write amplification $((media * 1000 / written)) per mille of 1000"

# Tools without FDP support compute write amplification from the extended SMART log of data centers
# (C0h).
nvme ocp smart-add-log "$admin" --output-format=json >"$SCRATCH/extended" 2>/dev/null || true
media=$(sed -n '/Physical media units written/,/}/s/.*"lo" *: *\([0-9]*\).*/\1/p' "$SCRATCH/extended" | head -n 1)
same "nvme ocp smart-add-log: the media bytes of the FDP statistics" "$media" "$(fdp_statistic "$admin" mbmw)"
