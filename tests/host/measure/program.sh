# shellcheck shell=dash
# Runs a program on ext4 below `warp capture`, with its data on one namespace and its log on
# another. If the drive has FDP, each namespace has its own placement handle. Parameters are SERIAL,
# TRANSPORTS=pcie, DATA_MIB, LOG_MIB and PLACEMENT=fdp|none.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

# `placed_on HANDLE` prints the options of a namespace with a placement handle.
placed_on() {
    [ "$PLACEMENT" = none ] || echo "--nphndls=1 --phndls=$1"
}

mkdir -p "$SCRATCH"
admin=$(admin_device pcie)
succeeds "the drive's namespace makes room" delete_namespaces "$admin"
# shellcheck disable=SC2046  # two words, or none
same "a namespace for data" "$(make_namespace "$admin" "$DATA_MIB" 0 pcie $(placed_on 0))" 1
# shellcheck disable=SC2046
same "a namespace for the log" "$(make_namespace "$admin" "$LOG_MIB" 0 pcie $(placed_on 1))" 2
data=$(block_device pcie 1) log=$(block_device pcie 2)
export DATA="$data" LOG="$log"
succeeds "the program is captured" warp capture "$data" --also "$log" --buffer 16MiB --out /shared/capture.csv.zst -- sh -e /host/program
tr "\r" "\n" <"$SCRATCH/output" >/shared/output
tail -n 5 /shared/output | sed "s/^/# /"
exit 0
