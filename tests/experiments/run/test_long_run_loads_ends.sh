#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The other ways in which one of several loads ends, or all: see test_run_loads_ends.sh.
LOADS_ENDS_WAYS='killed_first terminated full_disk' exec bash "$(dirname "$0")/test_run_loads_ends.sh"
