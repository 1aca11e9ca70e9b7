#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Real servers of many kinds with the shim in them: server_matrix.py.
# Time limit: 500 s
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
python3 tests/shim/server_matrix.py "$BUILD" "$work" "$@" || fail "a server came to harm, or was told wrong"
