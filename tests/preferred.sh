#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# preferred.sh COMMAND...: runs it in a session of its own that the scheduler prefers to what else the
# machine does, where that is allowed: what is tested is what a program says of itself and of the
# load that the test makes, not of whoever else is busy here.
nice -n -20 true 2>/dev/null || exec setsid --wait "$@"
exec setsid --wait bash -c '{ echo -20 >/proc/self/autogroup; } 2>/dev/null
    exec nice -n -20 "$@"' preferred "$@"
