#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The emulator in place of run_guest.sh's for a guest whose time is its own work, whatever the host does: each instruction takes a
# nanosecond, and where all cores sleep the next timer is due at once (QEMU 10 of LAB; -icount). Microseconds mean something
# there. Its cores take turns in one thread, at each interrupt that one sends to another and each sleep, else at the next
# timer: two that are busy for long make one another wait for milliseconds.
exec "$LAB/qemu/usr/bin/qemu-system-x86_64" -L "$LAB/qemu/usr/share/qemu" -L /usr/share/qemu -L /usr/share/seabios \
    "$@" -icount shift=0,sleep=off
