# shellcheck shell=dash
# extstore of memcached. A client gets and sets objects of 4 to 32 KiB by popularity, and sets each
# object that misses. memcached compacts pages before it evicts them. The client is no faster than
# compaction, because memcached would drop objects for lack of memory instead of writing them to
# flash. The share of dirty data in the page cache is as small as on a large machine. memcached has
# no log, so the second file system is empty. The model is memcached.toml.
# packages: memcached,python3
# log: 16 MiB
# reclaim unit: 6GiB
echo 8388608 >/proc/sys/vm/dirty_background_bytes
echo 33554432 >/proc/sys/vm/dirty_bytes
memcached -u root -s /tmp/memcached.sock -m 32 -t 2 -o ext_path=/mnt/data/cache:200M,ext_page_size=4,ext_wbuf_size=2,ext_compact_under=4 &
server=$!
tries=600
until [ -S /tmp/memcached.sock ]; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] && kill -0 $server
    sleep 0.1
done
python3 - <<END
import itertools
import random
import socket
import time

KEYS, ALPHA, OPERATIONS, GETS, BATCH = 28_000, 0.8, 200_000, 0.6, 32
MOST_BYTES_PER_SECOND = 16_000_000
random.seed(1)
weights = list(itertools.accumulate((rank + 1) ** -ALPHA for rank in range(KEYS)))
bytes_of = [int(4096 * 8 ** random.random()) for _ in range(KEYS)]
content = random.randbytes(32768)
connection = socket.socket(socket.AF_UNIX)
connection.connect("/tmp/memcached.sock")
answers = connection.makefile("rb", 1 << 20)


def get(keys):
    """Keys that are not there."""
    connection.sendall(b"".join(b"get %d\r\n" % key for key in keys))
    missed = []
    for key in keys:
        line = answers.readline()
        if line == b"END\r\n":
            missed.append(key)
        else:
            assert line.startswith(b"VALUE %d " % key), line
            answers.read(bytes_of[key] + len("\r\nEND\r\n"))
    return missed


def put(keys):
    """Sets keys; bytes of their values."""
    connection.sendall(b"".join(b"set %d 0 0 %d\r\n%b\r\n" % (key, bytes_of[key], content[: bytes_of[key]]) for key in keys))
    for key in keys:
        line = answers.readline()
        assert line == b"STORED\r\n", line
    return sum(bytes_of[key] for key in keys)


started, put_bytes, gets, misses = time.monotonic(), 0, 0, 0
for first in range(0, OPERATIONS, BATCH):
    keys = random.choices(range(KEYS), cum_weights=weights, k=BATCH)
    asked = [key for key in keys if random.random() < GETS]
    missed = get(asked)
    gets, misses = gets + len(asked), misses + len(missed)
    put_bytes += put([key for key in keys if key not in asked] + missed)
    time.sleep(max(0, started + put_bytes / MOST_BYTES_PER_SECOND - time.monotonic()))
connection.sendall(b"stats\r\n")
stats = dict(line.split()[1:3] for line in iter(answers.readline, b"END\r\n"))
wanted = ["curr_items", "bytes", "evictions"] + [name.decode() for name in stats if name.startswith(b"extstore")]
print(f"{put_bytes} bytes set in {time.monotonic() - started:.0f} s, hit ratio {1 - misses / gets:.3f};",
      ", ".join(f"{name} {stats[name.encode()].decode()}" for name in wanted))
END
kill $server
wait $server || true
umount /mnt/data /mnt/log
