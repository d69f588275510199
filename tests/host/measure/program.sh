# shellcheck shell=dash
# A program on ext4, its data on one namespace and its log on another, each with a placement handle of its own where the
# drive has FDP, and all of it recorded by `warp capture`. Parameters: SERIAL, TRANSPORTS=pcie, DATA_MIB, LOG_MIB, PLACEMENT=fdp|none

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

# Options of a namespace with this placement handle.
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
