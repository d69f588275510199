# shellcheck shell=dash
# File systems on the drive. This check also leaves two namespaces with known files for the checks
# after the server's restart.

use_file_system() { # ext4|f2fs TRANSPORT NSID MEBIBYTES
    local name=$1 transport=$2 mebibytes=$4 device before sum
    device=$(block_device "$transport" "$3")
    before=$(fdp_statistic "$admin" hbmw)
    succeeds "$name: mkfs through $transport" make_file_system "$name" "$device"
    succeeds "$name: mount" mount_file_system "$name" "$device"
    succeeds "$name: write files" populate "/mnt/$name/first" "$mebibytes"
    sum=$(tree_sum "/mnt/$name/first")
    succeeds "$name: unmount" umount "/mnt/$name"
    at_least "$name: the drive was written to" $(($(fdp_statistic "$admin" hbmw) - before)) $((mebibytes * 1048576))
    succeeds "$name: fsck" check_file_system "$name" "$device"
    succeeds "$name: mount again" mount_file_system "$name" "$device"
    same "$name: the files are unchanged" "$(tree_sum "/mnt/$name/first")" "$sum"
    keep "SUM_$name" "$sum"
}

admin=$(admin_device pcie)
succeeds "delete the namespaces" delete_namespaces "$admin"
same "a namespace for ext4" "$(make_namespace "$admin" 256 "$FORMAT_4096" "$TRANSPORTS" --nphndls=2 --phndls=2,3)" 1
same "a namespace for F2FS" "$(make_namespace "$admin" 384 "$FORMAT_4096" "$TRANSPORTS" --nphndls=4 --phndls=4,5,6,7)" 2

# Emulated TCP is slow, so this check writes less through it.
use_file_system ext4 "${TRANSPORTS##* }" 1 4
succeeds "ext4: trim" fstrim /mnt/ext4
succeeds "ext4: unmount" umount /mnt/ext4

use_file_system f2fs "${TRANSPORTS%% *}" 2 12
# F2FS writes data with a cold hint to its own write stream.
device=$(block_device pcie 2)
before=$(handle_status "$device")
succeeds "f2fs: a file with write_hint=extreme" \
    fio --name=cold --directory=/mnt/f2fs --rw=write --bs=64k --size=384k --direct=1 --write_hint=extreme --output=/dev/null
matches "f2fs: it went to the handle of cold data" \
    "$(moved_handles "$before" "$(handle_status "$device")" $(($(reclaim_unit_bytes "$admin") / 4096)))" "(^| )2:96( |\$)"
rm /mnt/f2fs/cold*
succeeds "f2fs: trim" fstrim /mnt/f2fs
succeeds "f2fs: unmount" umount /mnt/f2fs

# A saved feature and the state of FDP must also survive the restart.
succeeds "save a feature" nvme set-feature "$admin" --feature-id=4 --value=345 --save
succeeds "enable events" nvme fdp set-events "$device" --placement-handle=1 --event-types=0 --enable --save
for counter in hbmw mbmw mbe; do
    keep "COUNT_$counter" "$(fdp_statistic "$admin" $counter)"
done
for nsid in 1 2; do
    keep "HANDLES_$nsid" "$(handle_status "$(block_device pcie $nsid)" | tr '\n' ,)"
done
keep EVENTS "$(fdp_events "$admin" host | wc -l)"
