# shellcheck shell=dash
# The two file systems of a program: $DATA at /mnt/data, $LOG at /mnt/log, the drive told of what is deleted.
mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0 "$DATA"
mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0 "$LOG"
mkdir -p /mnt/data /mnt/log
mount -o discard "$DATA" /mnt/data
mount -o discard "$LOG" /mnt/log
