#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The counter of 64-bit ARM, by an emulated one: test_tsc, compiled for it.
# Runs beside others: it computes.
set -eu
for needed in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $needed >/dev/null || { echo "there is no $needed; make check-long installs it"; exit 77; }
done
program=$(mktemp)
trap 'rm -f "$program"' EXIT
aarch64-linux-gnu-gcc -D_GNU_SOURCE -std=gnu17 -O2 -Wall -Wextra -Werror -static -I. -o "$program" \
    tests/base/test_tsc.c base/tsc_rate.c
qemu-aarch64 "$program"
