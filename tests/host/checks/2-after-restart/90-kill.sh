# shellcheck shell=dash
# Some files are synced and others are being written when the server is killed. The synced files
# must survive.

write_without_end() { # DIRECTORY
    mkdir "$1"
    while random_bytes 100000 >"$1/$(date +%N)"; do :; done
}

for name in ext4 f2fs; do
    case $name in ext4) device=$(block_device pcie 1) ;; *) device=$(block_device pcie 2) ;; esac
    succeeds "$name: mount" mount_file_system $name "$device"
    succeeds "$name: write files and sync" populate "/mnt/$name/second" 4
    keep "SUM_AGAIN_$name" "$(tree_sum "/mnt/$name/second")"
done
write_without_end /mnt/ext4/unsynced 2>/dev/null &
write_without_end /mnt/f2fs/unsynced 2>/dev/null &
sleep 2
pass "files are being written"
echo "@@kill"
sleep 60
