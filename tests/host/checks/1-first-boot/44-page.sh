# shellcheck shell=dash
# The drive's web page, open while fio writes, shows the activity of this host and the write
# amplification of the drive's own statistics.
#
# The page is open outside of the guest, in Chromium if it is installed. Files of /host/page contain
# the shown values. `open` names the browser, `hosts` has the first IOPS and queue depth of the host
# on vfio-user, and `waf` has the current write amplification.

case $TRANSPORTS in
*tcp*) ;;
*)
    skip "the page of the drive" "this drive has none"
    exit 0
    ;;
esac

device=$(block_device pcie 1)
admin=$(admin_device pcie)

echo "@@page"
if ! wait_for 60 test -s /host/page/open; then
    fail "the page is open" "not within 60 s"
    echo "@@page end"
    exit 0
fi
opened=$(cat /host/page/open)
if [ "$opened" = none ]; then
    skip "the page of the drive" "there is neither Chromium nor Python to open it with"
    exit 0
fi
echo "# the page is open in $opened"
fio --name=check --filename="$device" --direct=1 --thread --output="$SCRATCH/fio" --ioengine=io_uring --rw=randwrite --bs=16k --iodepth=16 \
    --norandommap --time_based --runtime=60 &
writing=$!
eventually "the page shows this host while fio writes" 40 test -s /host/page/hosts
# Without the redirection the shell would report that the job was terminated.
{
    kill -TERM $writing
    wait $writing
} 2>/dev/null
read -r iops depth <"/host/page/hosts"
echo "# the page showed $iops IOPS, queue depth $depth"
at_least "its IOPS" "${iops%%.*}" 1
differs "its queue depth" "${depth:-0.0}" 0.0
waf=$(awk -v host="$(fdp_statistic "$admin" hbmw)" -v media="$(fdp_statistic "$admin" mbmw)" 'BEGIN { printf "%.3f", media / host }')
eventually "the page shows the write amplification of the FDP statistics, $waf" 20 grep -qx "$waf" /host/page/waf
same "it is that" "$(cat /host/page/waf)" "$waf"
echo "@@page end"
