# shellcheck shell=dash
# RocksDB 9. Its records are put once in random order and then overwritten at random. Writers wait
# when compaction is 16 MiB behind, so that the file system does not fill up. The log is synced in
# pieces, because the kernel never writes the cached part of a deleted log. The model is
# rocksdb.toml.
# packages: rocksdb-tools
# log: 32 MiB
run() {
    db_bench --db=/mnt/data/db --wal_dir=/mnt/log/wal --num=26000 --key_size=16 --value_size=4000 --compression_type=none \
        --write_buffer_size=1048576 --target_file_size_base=524288 --max_bytes_for_level_base=4194304 \
        --soft_pending_compaction_bytes_limit=8388608 --hard_pending_compaction_bytes_limit=16777216 \
        --level_compaction_dynamic_level_bytes=true --wal_bytes_per_sync=65536 "$@"
}
run --benchmarks=filluniquerandom --benchmark_write_rate_limit=1500000
run --use_existing_db=1 --benchmarks=overwrite --writes=80000 --benchmark_write_rate_limit=1200000
umount /mnt/data /mnt/log
