#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path as one (headline_lib.sh, tests/lab/headline.yaml): the requests join with all stamps in order, the trace
# decodes, and the function that was slow is the top cause.
# Its machine is emulated, and its timings mean nothing.
# Time limit: 1800 s
command -v sqlite3 >/dev/null || { echo "there is no sqlite3"; exit 77; }
SERVER="kind: labserver, options: [--fault, 'slow,100ms,450ms', --fault-log, /home/faults]" RATE=10 DURATION=20s SLICE=p75-100
. tests/lab/headline_lib.sh
jq -e '.stamps.hw >= 0.95 * .answered' "$work/run/client/load.json" >/dev/null ||
    fail "the NIC's stamps: $(jq -c '[.answered, .stamps, .hardware_stamps]' "$work/run/client/load.json")"
expect '.joined >= 0.99 * .requests and .order_violations == 0'
expect '.join | .nic_stamps >= 0.9 * (.nic_stamps + .without_nic_stamp + .wrong_nic_stamps) and .nic_stamps > 0'
expect '.trace.slow_traced_ns >= 0.95 * .trace.slow_ns and .trace.functions > 0'
# The function that was made slow is the first cause of each message of which that is half of what made it slow.
score=$(awk '{ print $1 "," $2 }' "$work/out/faults" | score 'unexpected slow_function' application_ns reply_ns own) || { echo "$score"; exit 1; }
jq -e '.[0] | .mostly >= 20 and .first >= 0.95 * .mostly' <<<"$score" >/dev/null || fail "of the messages that were slow by themselves: $score; $(cat "$work/verdict")"
expect '[.causes[] | select(.cause == "unexpected slow_function") | .category] == ["application"]' # whatever the names of its callers
# What ran is what the emulator knows: by libipt with the code as it ran nothing is missing and nothing more; by Taillight, with
# the kernel's code as perf copied it, hardly anything (an error leaves out what comes up to the next PSB).
"$BUILD/tests/lab/lab_check" "$work/run/server/perf.data" "$work/out/lab/cpu0.truth" >"$work/check" 2>"$work/said" ||
    fail "against the truth: $(cat "$work/check")"
"$BUILD/taillight" analyze "$work/run/server/perf.data" --symfs "$work/run/server/symfs" --json >"$work/decoded" 2>"$work/said"
jq -se '([.[0].streams[].instructions] | add) as $seen | $seen <= .[1].true_instructions and $seen >= 0.98 * .[1].true_instructions' \
    "$work/decoded" "$work/check" >/dev/null ||
    fail "Taillight decodes $(jq -c '[.streams[] | [.instructions, .errors]]' "$work/decoded"); $(cat "$work/check")"
echo "exit $status; $(jq -c '[.requests, .joined, [.causes[] | select(.class == "function") | [.cause, .messages]][:2]]' "$summary"); $(cat "$work/check"); by Taillight $(jq -c '[.streams[] | [.instructions, .errors]]' "$work/decoded"); $score"
