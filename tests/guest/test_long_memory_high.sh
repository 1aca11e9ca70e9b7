#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A control group with more memory than its memory.high, in a guest, since that is cgroup v2's: the
# scene of the gallery finds there what it says, and the kernel's own count is told beside it.
. tests/guest/guest_lib.sh
scene=experiments/causes/redis-memory-high.yaml
cat >"$work/inside.sh" <<'INSIDE'
mount -t cgroup2 none /sys/fs/cgroup
sh -c "$(sed -n 's/^# if: //p' redis-memory-high.yaml)" || exit 1
./taillight run redis-memory-high.yaml --out /tmp/run --quiet >/dev/null 2>/out/run.err
echo $? >/out/verdict
cp /tmp/run/summary.json /tmp/run/server/capture.json /out/
INSIDE
guest_run -t 300 -p redis-server -p cat -f $scene -f "$work/inside.sh" '. ./inside.sh'
guest_run_is_whole 500
expect capture.json '.memory_limits | any(.group == "/taillight-high" and .limit == "memory.high" and .times > 20)' .memory_limits
first=$(jq -r '.causes[0] | "\(.cause) (\(.role))"' "$work/out/summary.json")
grep -qE -- "$(sed -n 's/^# expect: //p' $scene)" <<<"$first" ||
    fail "first cause: $first: $(jq -r .verdict "$work/out/summary.json")"
jq -r .verdict "$work/out/summary.json" | grep -qE -- "$(sed -n 's/^# verdict: //p' $scene)" ||
    fail "verdict: $(jq -r .verdict "$work/out/summary.json")"
echo "$first"
