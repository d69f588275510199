# shellcheck shell=dash
# RocksDB's db_bench on ext4 below `warp capture`, which attributes all writes to files. The capture
# goes to the host for `warp whatif`. Parameters are SERIAL and TRANSPORTS=pcie.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

mkdir -p "$SCRATCH"
wait_for 10 has_block_device pcie 1
device=$(block_device pcie 1)
succeeds "a file system on the namespace" make_file_system ext4 "$device"
succeeds "it is mounted" mount_file_system ext4 "$device"
succeeds "db_bench is captured" warp capture "$device" --out /shared/capture.csv -- db_bench --db=/mnt/ext4/db \
    --benchmarks=fillrandom,overwrite,overwrite,overwrite,overwrite --num=20000 --value_size=1000 --compression_type=none \
    --write_buffer_size=262144 --target_file_size_base=65536 --max_bytes_for_level_base=1048576
tr '\r' '\n' <"$SCRATCH/output" | grep -E 'micros/op|^warp:' | sed 's/^/# /'
umount /mnt/ext4
same "the tables are files of the capture" "$(grep -c ',db/[0-9]*.sst,W,' /shared/capture.csv | sed 's/^[1-9].*/some/')" some
same "the log is captured" "$(grep -c ',db/[0-9]*.log,W,' /shared/capture.csv | sed 's/^[1-9].*/some/')" some
exit 0
