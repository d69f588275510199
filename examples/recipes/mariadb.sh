# MariaDB on ext4 of /dev/nvme0n1. sysbench loads a table and updates 12,000 of its rows at random.
# Arguments are options of the server, such as --innodb-doublewrite=OFF.
set -e
mkfs.ext4 -q -F -m 0 -E lazy_itable_init=0,lazy_journal_init=0 /dev/nvme0n1
mount -o discard /dev/nvme0n1 /mnt
mkdir -p /mnt/db /run/mysqld
cat >/tmp/my.cnf <<END
[server]
user = root
datadir = /mnt/db
socket = /run/mysqld/mysqld.sock
skip-networking
innodb_buffer_pool_size = 24M
innodb_log_file_size = 8M
innodb_flush_neighbors = 0
innodb_stats_auto_recalc = OFF
performance_schema = OFF
END
mariadb-install-db --defaults-file=/tmp/my.cnf --skip-test-db --auth-root-authentication-method=normal >/dev/null
mariadbd --defaults-file=/tmp/my.cnf "$@" >/tmp/mariadb.log 2>&1 &
server=$!
tries=600
until mariadb --socket=/run/mysqld/mysqld.sock -e 'CREATE DATABASE sbtest' 2>/dev/null; do
    tries=$((tries - 1))
    if [ $tries = 0 ] || ! kill -0 $server; then cat /tmp/mariadb.log; exit 1; fi
    sleep 0.2
done
bench() {
    sysbench oltp_update_non_index --db-driver=mysql --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=root --tables=1 \
        --table-size=550000 --rand-type=uniform --rand-seed=1 --threads=2 --time=0 --events=12000 "$@"
}
bench prepare >/dev/null
bench run | grep -E 'transactions:|total number of events'
mariadb-admin --socket=/run/mysqld/mysqld.sock shutdown
wait $server
umount /mnt
