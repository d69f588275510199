#!/bin/busybox sh
# shellcheck shell=dash
# The guest's first process. The root file system is a folder of the host, read-only, under one in memory; all that depends
# on what is to be done comes in another, from where the second half of the start goes on.
/bin/busybox --install -s /bin
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in virtio_console 9pnet_virtio 9p overlay; do
    modprobe "$module"
done
mkdir /memory /tree /new
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro tree /tree
mount -t tmpfs -o mode=755 memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/tree,upperdir=/memory/upper,workdir=/memory/work overlay /new
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro warp /new/warp
mount --bind /lib/modules /new/usr/lib/modules
mount -t proc proc /new/proc
mount -t sysfs sys /new/sys
mount -t devtmpfs dev /new/dev
exec chroot /new /bin/sh /warp/start
