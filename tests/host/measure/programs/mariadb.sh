# shellcheck shell=dash
# InnoDB of MariaDB. sysbench updates rows at random, with a buffer pool of a sixth of the rows. The
# doublewrite buffer is in the system tablespace, beside the log. The model is mariadb.toml.
# packages: mariadb-server,sysbench
# log: 48 MiB
mkdir -p /mnt/data/db /mnt/log/db /run/mysqld
cat >/tmp/my.cnf <<END
[server]
user = root
datadir = /mnt/data/db
socket = /run/mysqld/mysqld.sock
skip-networking
innodb_data_home_dir = /mnt/log/db
innodb_log_group_home_dir = /mnt/log/db
innodb_undo_directory = /mnt/data/db
innodb_buffer_pool_size = 24M
innodb_log_file_size = 8M
innodb_flush_neighbors = 0
innodb_stats_auto_recalc = OFF
performance_schema = OFF
END
mariadb-install-db --defaults-file=/tmp/my.cnf --skip-test-db --auth-root-authentication-method=normal >/dev/null
mariadbd --defaults-file=/tmp/my.cnf >/tmp/mariadb.log 2>&1 &
server=$!
tries=600
until mariadb --socket=/run/mysqld/mysqld.sock -e 'CREATE DATABASE sbtest' 2>/dev/null; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] && kill -0 $server || { cat /tmp/mariadb.log; exit 1; }
    sleep 0.2
done
bench() {
    sysbench oltp_update_non_index --db-driver=mysql --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=root --tables=1 \
        --table-size=550000 --rand-type=uniform --threads=2 --time=0 --events=60000 --report-interval=30 "$@"
}
bench prepare >/dev/null
bench run
mariadb-admin --socket=/run/mysqld/mysqld.sock shutdown
wait $server
umount /mnt/data /mnt/log
