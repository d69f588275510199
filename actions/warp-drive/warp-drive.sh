# shellcheck shell=sh
# Functions for tests in POSIX sh, which serve a new drive and check its write amplification.
#
#   . ./warp-drive.sh
#   warp_drive_start FOLDER [OPTION...]   serves a drive whose files are in FOLDER, with options of
#                                         `warp serve`. Sets WARP_DRIVE to tcp:127.0.0.1:PORT
#   warp_drive_stop                       stops it
#   warp_drive_check OPTION...            checks limits after the stop, with options of
#                                         `warp drive check`
#
# WARP is the program, `warp` by default. Each function returns 0 if it succeeded.

warp_drive_start() {
    warp_drive_file=$1/drive.img warp_drive_log=$1/serve.log
    shift
    # A drive counts since it was made.
    if [ -e "$warp_drive_file" ]; then
        echo "warp-drive.sh: $warp_drive_file exists. Give each drive a new folder" >&2
        return 1
    fi
    : >"$warp_drive_log" || return 1
    "${WARP:-warp}" serve --quiet --tcp 127.0.0.1:0 --data "$warp_drive_file" "$@" >"$warp_drive_log" 2>&1 &
    warp_drive_process=$!
    while WARP_DRIVE=$(sed -n 's/^ *nvme connect -t tcp -a \([0-9.]*\) -s \([0-9]*\) .*/tcp:\1:\2/p' "$warp_drive_log") &&
        [ -z "$WARP_DRIVE" ]; do
        if ! kill -0 "$warp_drive_process" 2>/dev/null; then
            cat "$warp_drive_log" >&2
            return 1
        fi
        sleep 0.1
    done
    export WARP_DRIVE
}

warp_drive_stop() {
    kill -TERM "$warp_drive_process" && wait "$warp_drive_process"
}

warp_drive_check() {
    "${WARP:-warp}" drive check "$warp_drive_file" "$@"
}
