# shellcheck shell=dash
# After the server was killed, the drive starts, the file systems recover, and the synced files are
# complete. In this boot the kernel sees one drive with two paths, which is its default.

recover() { # ext4|f2fs NSID FIRST-SUM SECOND-SUM
    local name=$1 device
    wait_for 10 multipath_device "$2"
    device=$(multipath_device "$2")
    succeeds "$name: mount recovers it" mount_file_system "$name" "$device"
    same "$name: the synced files are complete" "$(tree_sum "/mnt/$name/second")" "$4"
    same "$name: the earlier files are complete" "$(tree_sum "/mnt/$name/first")" "$3"
    succeeds "$name: it can be written" populate "/mnt/$name/third" 2
    succeeds "$name: unmount" umount "/mnt/$name"
    succeeds "$name: fsck" check_file_system "$name" "$device"
}

eventually "the controller is live" 10 is_live pcie
# shellcheck disable=SC2153  # made by the host
succeeds "tcp: connect with a secret" connect_tcp --dhchap-secret="$SECRET"
same "the kernel sees two paths to one drive" "$(nvme list-subsys | grep -c live)" 2
nvme smart-log "$(admin_device pcie)" --output-format=binary >"$SCRATCH/smart"
at_least "the drive knows that it was not shut down" "$(field "$SCRATCH/smart" 144 8)" 1

# shellcheck disable=SC2154  # kept by the phases before
recover ext4 1 "$SUM_ext4" "$SUM_AGAIN_ext4"
# shellcheck disable=SC2154
recover f2fs 2 "$SUM_f2fs" "$SUM_AGAIN_f2fs"
