# shellcheck shell=dash
# The files survived. Each is read through the transport that did not write it.

find_files() { # ext4|f2fs TRANSPORT NSID SUM
    local name=$1 transport=$2 device
    device=$(block_device "$transport" "$3")
    succeeds "$name: fsck through $transport" check_file_system "$name" "$device"
    succeeds "$name: mount" mount_file_system "$name" "$device"
    same "$name: the files are unchanged" "$(tree_sum "/mnt/$name/first")" "$4"
    succeeds "$name: unmount" umount "/mnt/$name"
}

# shellcheck disable=SC2154  # kept by the phase before
find_files ext4 "${TRANSPORTS%% *}" 1 "$SUM_ext4"
# shellcheck disable=SC2154
find_files f2fs "${TRANSPORTS##* }" 2 "$SUM_f2fs"
