#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The emulator of the lab, in place of run_guest.sh's: the same machine on QEMU 10, with a processor that
# says it is Intel's, the shared memory, and the plugin. lab.sh sets LAB_*.
exec "$LAB_QEMU/usr/bin/qemu-system-x86_64" -L "$LAB_QEMU/usr/share/qemu" -L /usr/share/qemu -L /usr/share/seabios \
    "$@" -machine smm=off -cpu "max,la57=off,vendor=GenuineIntel${LAB_CPU:+,$LAB_CPU}" \
    -object "memory-backend-file,id=lab,share=on,size=$LAB_BYTES,mem-path=$LAB_PAGE" \
    -device ivshmem-plain,memdev=lab ${LAB_COUNTED:+-icount shift=0,sleep=off} \
    -plugin "$LAB_PLUGIN,page=$LAB_PAGE,cpus=$LAB_CPUS,out=$LAB_OUT${LAB_COUNTED:+,counted=on}${LAB_OPTIONS:+,$LAB_OPTIONS}"
