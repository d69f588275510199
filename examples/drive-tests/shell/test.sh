#!/bin/sh
# The store keeps its log and its index apart. WARP is the program, and WARP_DRIVE_FUNCTIONS is a copy
# of actions/warp-drive/warp-drive.sh.
set -eu
cd "$(dirname "$0")"
. "${WARP_DRIVE_FUNCTIONS:-../../../actions/warp-drive/warp-drive.sh}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

warp_drive_start "$folder" --capacity 32M
"${WARP:-warp}" run ../store.fio --target "$WARP_DRIVE" --no-keep || { warp_drive_stop; exit 1; }
warp_drive_stop
warp_drive_check --waf-at-most 1.15 --handle 0:1.01
