# shellcheck shell=dash
# Runs one fio job file on a fresh drive over each transport and prints what the drive counted.
#
# The job's device is /dev/ng0n1 or /dev/nvme0n1, as in jobs/: those names are given to the drive under test, because fio's
# random numbers depend on the name. Parameters: TRANSPORTS, SERIAL (vfio-user), SERIAL_TCP, TCP_ADDRESS, TCP_PORT, PLACEMENT.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

# The job as asked for: with its placement identifiers, all on one, or none.
case $PLACEMENT in
fdp) cp /host/job.fio /tmp/job.fio ;;
mixed) sed -E 's/^[[:space:]]*(plids|fdp_pli)[[:space:]]*=.*/plids=0/' /host/job.fio >/tmp/job.fio ;;
none) sed -E '/^[[:space:]]*(fdp|dataplacement|plids|fdp_pli|plid_select|fdp_pli_select)[[:space:]]*=/d' /host/job.fio >/tmp/job.fio ;;
esac

# Counters of the drive; without FDP there is only what the host wrote, in the SMART log, and the endurance group's media units.
counters() { # ADMIN-DEVICE
    if [ "$PLACEMENT" = none ]; then
        nvme endurance-log "$1" --group-id=1 --output-format=binary >"$SCRATCH/endurance"
        echo "$(field "$SCRATCH/endurance" 64 8) $(field "$SCRATCH/endurance" 80 8)"
    else
        echo "$(fdp_statistic "$1" hbmw) $(fdp_statistic "$1" mbmw)"
    fi
}

status=0
mkdir -p "$SCRATCH"
for transport in $TRANSPORTS; do
    if [ "$transport" = tcp ]; then
        # shellcheck disable=SC2034  # for the functions of lib.sh
        SERIAL=$SERIAL_TCP
        nqn=$(nvme discover -t tcp -a "$TCP_ADDRESS" -s "$TCP_PORT" | sed -n 's/^subnqn: *//p' | grep -v discovery | head -n 1)
        nvme connect -t tcp -a "$TCP_ADDRESS" -s "$TCP_PORT" -n "$nqn" || exit 1
    fi
    wait_for 10 has_block_device "$transport" 1
    admin=$(admin_device "$transport")
    for device in $(block_device "$transport" 1) $(generic_device "$transport" 1); do
        case $device in *ng*) name=/dev/ng0n1 ;; *) name=/dev/nvme0n1 ;; esac
        [ "$device" = $name ] || mv "$device" $name
    done
    before=$(counters "$admin")
    fio --output=/tmp/report /tmp/job.fio || status=1
    grep -E '(read|write):|err= *[1-9]' /tmp/report | sed "s/^/# $transport: /"
    after=$(counters "$admin")
    echo "$before $after" | awk -v transport="$transport" '{
        printf "%s host_bytes=%d media_bytes=%d waf=%.4f\n", transport, $3 - $1, $4 - $2, ($4 - $2) / ($3 - $1) }'
done
exit $status
