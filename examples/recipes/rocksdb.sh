# RocksDB's db_bench on a file system of /dev/nvme0n1, below `warp hints`. Arguments are the file
# system (f2fs or ext4) and further options of db_bench.
set -e
case $1 in
f2fs) mkfs.f2fs -q -f /dev/nvme0n1 ;;
ext4) mkfs.ext4 -q -F -m 0 -E lazy_itable_init=0,lazy_journal_init=0 /dev/nvme0n1 ;;
esac
mount -t "$1" -o discard /dev/nvme0n1 /mnt
shift
# Writers wait when compaction is behind, so the file system does not fill up.
warp hints -- sh -c 'exec "$@" >/tmp/report 2>&1' - \
    db_bench --db=/mnt/db --benchmarks=fillrandom,overwrite,overwrite --num=3000 --writes=3000 --seed=1 \
    --key_size=16 --value_size=32000 --compression_type=none --checksum_type=0 \
    --write_buffer_size=1048576 --target_file_size_base=1048576 \
    --max_bytes_for_level_base=4194304 --max_bytes_for_level_multiplier=4 --level_compaction_dynamic_level_bytes=false \
    --soft_pending_compaction_bytes_limit=8388608 --hard_pending_compaction_bytes_limit=16777216 "$@" ||
    { cat /tmp/report; exit 1; }
umount /mnt
