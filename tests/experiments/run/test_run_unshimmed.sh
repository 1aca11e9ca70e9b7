#!/usr/bin/env bash
# A server that the shim was asked for and does not get into: the kernel's record of its calls stands
# in, and is not made of a server beside it in which the shim works.
# Runs beside others: what else is busy makes it wait, and nothing is timed.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program jq jq
build=$(cd "$BUILD" && pwd)
unshimmed() { # FILE WORDS-BEFORE-THE-SERVER
    experiment "$1" netns 1k 3s <<EOF
servers:
  lab: {host: server, kind: command, shim: true, command: [$2"$build/labserver", "--port", "{port}", "--service", "fixed:10us"]}
EOF
}
joined_by() { # FILTER: of the calls, and what is joined
    jq -e ".joined >= 0.98 * .answered and .answered > 1000 and (.calls | $1)" "$work/run/summary.json" >/dev/null ||
        fail "not $1: $(jq -c '[.requests, .answered, .joined, .calls]' "$work/run/summary.json")"
}
run_it() {
    rm -rf "$work/run"
    "$taillight" run "$1" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
    [[ $? == [04] ]] || fail "the run ended with an error"
}
unshimmed "$work/without.yaml" '"env", "-u", "LD_PRELOAD", '
run_it "$work/without.yaml"
joined_by '.by_shim == 0 and .by_kernel > 2000'
jq -e '[.warnings[] | select(test("the shim was never loaded"))] | length == 1' "$work/run/server/capture.json" >/dev/null ||
    fail "it is not said that the shim was not there"

unshimmed "$work/with.yaml" ''
# It may be a second until the capture sees that the shim works there.
left_try() {
    run_it "$work/with.yaml"
    joined_by '.by_shim > 2000 and .by_kernel == 0 and (has("shim_minus_kernel") | not)'
    jq -e '.kernel_calls == "where the shim does not work" and .events.events.sent < 0.6 * .shim.calls / 2' \
        "$work/run/server/capture.json" >/dev/null && return
    echo "the kernel records calls of the shim's: $(jq -c '[.shim.calls, .events.events.sent]' "$work/run/server/capture.json")"
    return 1
}
judged_tries left_try || fail "calls are not left to the shim"
check_nothing_left "$work/run" ""
