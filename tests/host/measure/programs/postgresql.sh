# shellcheck shell=dash
# PostgreSQL with rows that are updated at random, ten in a transaction. Shared buffers hold all
# rows, so pages reach the drive at checkpoints. The model is postgresql.toml.
# packages: postgresql
# log: 48 MiB
bin=$(echo /usr/lib/postgresql/*/bin)
mkdir -p /mnt/data/pg /mnt/log/pg
chown guest /mnt/data/pg /mnt/log/pg
as_guest() {
    su guest -c "$*"
}
as_guest "$bin/initdb --pgdata=/mnt/data/pg --waldir=/mnt/log/pg/wal --wal-segsize=1 --auth=trust --no-locale --encoding=UTF8 --no-sync" >/dev/null
cat >>/mnt/data/pg/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '/tmp'
shared_buffers = 256MB
max_wal_size = 16MB
min_wal_size = 2MB
checkpoint_timeout = 1d
bgwriter_lru_maxpages = 0
autovacuum = off
END
as_guest "$bin/pg_ctl --pgdata=/mnt/data/pg --log=/tmp/pg.log --wait start" >/dev/null
sql() {
    as_guest "$bin/psql --host=/tmp --quiet --no-psqlrc --set=ON_ERROR_STOP=1 postgres"
}
sql <<END
CREATE TABLE records (id int PRIMARY KEY, field text) WITH (fillfactor = 80);
INSERT INTO records SELECT id, repeat('x', 100) FROM generate_series(1, 550000) id;
VACUUM ANALYZE records;
CHECKPOINT;
END
{
    echo "BEGIN;"
    for number in 1 2 3 4 5 6 7 8 9 10; do
        echo "\\set id$number random(1, 550000)"
        echo "UPDATE records SET field = repeat('y', 100) WHERE id = :id$number;"
    done
    echo "END;"
} >/tmp/update.sql
as_guest "$bin/pgbench --host=/tmp --no-vacuum --client=2 --transactions=10000 --file=/tmp/update.sql postgres"
as_guest "$bin/pg_ctl --pgdata=/mnt/data/pg --wait stop" >/dev/null
umount /mnt/data /mnt/log
