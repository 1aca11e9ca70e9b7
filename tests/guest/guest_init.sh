#!/bin/busybox sh
# SPDX-License-Identifier: MIT
#
# The guest's first process: mounts what programs expect, runs /guest/command with its output on the
# second serial port, and leaves /out and the exit code as a tar archive on the disk.
/bin/busybox --install -s /usr/lib/busybox
ln -s /usr/lib/busybox/modprobe /sbin/modprobe # for the kernel's own requests
export PATH=/usr/sbin:/usr/bin:/usr/lib/busybox HOME=/root LANG=C
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs none /dev/shm
mount -t tmpfs none /tmp
mount -t devpts none /dev/pts
mount -t tracefs none /sys/kernel/tracing
mount -t bpf none /sys/fs/bpf
ulimit -n 65536
ip link set lo up
modprobe -a virtio_pci virtio_blk
cd /guest || exit 1
setsid bash ./command </dev/null >/dev/ttyS1 2>&1
echo $? >/out/.status
stty -F /dev/ttyS1 >/dev/null 2>&1 # waits for what is still to be sent
tar -C /out -cf /dev/vda . && sync
poweroff -f
