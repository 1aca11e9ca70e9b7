#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capture --backend functions` where the kernel has no function_graph tracer: it refuses,
# in the doctor's words, and records nothing. (Where it has one: tests/guest.)
set -u
work=$(mktemp -d /tmp/taillight-functions-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*"
    cat "$work/said"
    exit 1
}
taillight=$BUILD/taillight
reason=$("$taillight" doctor --json |
    jq -r '.items[] | select(.name == "kernel function tracing" and .state != "yes") | .missing')
if [ -n "$reason" ]; then
    "$taillight" capture --out "$work/here" --backend functions --no-events </dev/null >/dev/null 2>"$work/said"
    [ $? -eq 1 ] || fail "without function_graph it does not end with 1"
    grep -qF "cannot trace kernel functions: $reason; needed: " "$work/said" || fail "not in the doctor's words"
fi
"$taillight" capture --out "$work/here" --backend events --functions 'tcp_*' --port 1 </dev/null 2>"$work/said"
[ $? -eq 2 ] || fail "--functions without its backend is accepted"
[ ! -e "$work/here/capture.json" ] || fail "a capture that was refused has a capture.json"
