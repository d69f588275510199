# shellcheck shell=dash
# LMDB with rows of 108 bytes. The rows are put in order and then replaced at random, 4000 in a
# transaction. LMDB has no log, so the second file system is empty. The model is lmdb.toml.
# packages: python3-lmdb
# log: 16 MiB
python3 - <<END
import random

import lmdb

random.seed(1)
rows, transactions = 1_200_000, 180
environment = lmdb.open("/mnt/data/db", map_size=205 << 20)
for first in range(0, rows, 4000):
    with environment.begin(write=True) as transaction:
        for row in range(first, first + 4000):
            transaction.put(b"%08d" % row, b"x" * 100, append=True)
for number in range(transactions):
    with environment.begin(write=True) as transaction:
        for _ in range(4000):
            transaction.put(b"%08d" % random.randrange(rows), random.randbytes(100))
print(environment.info(), environment.stat())
environment.close()
END
umount /mnt/data /mnt/log
