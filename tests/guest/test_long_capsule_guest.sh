#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` on a kernel without tcx, Debian's 6.1: hops are filters of clsact, and gone at each end.
. "$(dirname "$0")/guest_lib.sh"
guest_run -t 240 -p tc -f tests/profiler/capsule/clsact_scene.sh \
    'uname -r; dmesg -n 1; bash clsact_scene.sh /guest/taillight && ! dmesg | grep -E "WARNING:|BUG:|Oops"'
cat "$work/said"
