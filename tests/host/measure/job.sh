# shellcheck shell=dash
# Runs one fio job file on a fresh drive over each transport.
#
# The drive under test gets the device names of jobs/, /dev/ng0n1 or /dev/nvme0n1, because fio's
# random numbers depend on the name. Parameters are TRANSPORTS, SERIAL (vfio-user), SERIAL_TCP,
# TCP_ADDRESS and TCP_PORT.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

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
    for device in $(block_device "$transport" 1) $(generic_device "$transport" 1); do
        case $device in *ng*) name=/dev/ng0n1 ;; *) name=/dev/nvme0n1 ;; esac
        [ "$device" = $name ] || mv "$device" $name
    done
    fio --output=/tmp/report /host/job.fio || status=1
    grep -E '(read|write): |err= *[1-9]' /tmp/report | sed "s/^/# $transport: /"
done
exit $status
