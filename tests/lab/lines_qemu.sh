#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The emulator in place of run_guest.sh's for a guest whose cache lines are watched (lines_plugin.c):
# QEMU 10 of LAB, with the plugin writing to LINES.
exec "$LAB/qemu/usr/bin/qemu-system-x86_64" -L "$LAB/qemu/usr/share/qemu" -L /usr/share/qemu -L /usr/share/seabios \
    "$@" -plugin "$LAB/lines_plugin.so,out=$LINES"
