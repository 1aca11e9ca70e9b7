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
echo "the guest is up" >/dev/ttyS0

# An emulated core may lose its timer. Who then waits until all cores have passed through the kernel
# waits for ever: run_guest.sh looks for this line. What else sleeps in the kernel is said, too.
(
    sleep 45
    grep -l synchronize_rcu /proc/[0-9]*/task/[0-9]*/stack >/run/waiting 2>/dev/null
    sleep 15
    while read -r stack; do
        grep -q synchronize_rcu "$stack" && echo "stands still: $stack has waited for all cores for 15 s"
    done </run/waiting
    for task in /proc/[0-9]*/task/[0-9]*; do
        grep -q 'State:.D' "$task/status" && echo "$task: $(head -n 1 "$task/status")" && cat "$task/stack"
    done
) >/dev/ttyS0 2>/dev/null &
ip link set lo up
modprobe -a virtio_pci virtio_blk
cd /guest || exit 1
# Many a step ends the command without words (a module that cannot be had, a wait that is over): the
# last ones are told where it failed. Only of our own scripts, whoever runs them.
cat >/run/steps.sh <<'STEPS'
case $0 in
    ./command | inside* | at_server)
        exec {BASH_XTRACEFD}>>/run/steps
        PS4='+ $0:$LINENO: '
        set -x
        ;;
esac
STEPS
BASH_ENV=/run/steps.sh setsid bash ./command </dev/null >/dev/ttyS1 2>&1
echo $? >/out/.status
tail -n 8 /run/steps | cut -c 1-300 >/out/.steps
stty -F /dev/ttyS1 >/dev/null 2>&1 # waits for what is still to be sent
tar -C /out -cf /dev/vda . && sync
poweroff -f
