# shellcheck shell=dash
# Makes the two file systems of a program, $DATA at /mnt/data and $LOG at /mnt/log. Both discard
# deleted data.
mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0 "$DATA"
mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0 "$LOG"
mkdir -p /mnt/data /mnt/log
mount -o discard "$DATA" /mnt/data
mount -o discard "$LOG" /mnt/log
