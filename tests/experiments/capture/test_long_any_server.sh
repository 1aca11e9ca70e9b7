#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Servers of many kinds as anybody runs them, without the shim (server_matrix.py --without-shim):
# static ones, Go, io_uring, a JVM, node's cluster: 99.9 % of the answered requests are joined.
# Time limit: 400 s
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
python3 tests/shim/server_matrix.py "$BUILD" "$work" --without-shim "$@" || fail "a server's requests are not joined"
