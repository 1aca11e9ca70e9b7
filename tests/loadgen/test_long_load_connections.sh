#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tests/loadgen/test_load_connections.sh with ten thousand of them.
[ "${TAILLIGHT_LONG:-}" ] || { echo 'long: make check-long'; exit 77; }
CONNECTIONS=10000 RATE=20k exec bash "$(dirname "$0")/test_load_connections.sh"
