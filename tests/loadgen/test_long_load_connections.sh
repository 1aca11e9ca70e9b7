#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tests/loadgen/test_load_connections.sh with ten thousand of them and 100,000 requests a second.
[ "${TAILLIGHT_LONG:-}" ] || { echo 'long: make check-long'; exit 77; }
CONNECTIONS=10000 RATE=100k MAY_LAG=1 exec bash "$(dirname "$0")/test_load_connections.sh"
