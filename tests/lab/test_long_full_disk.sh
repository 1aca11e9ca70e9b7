#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) on a small disk that fills up in the middle of the load: the trace ends, all else is whole, the
# verdict says so, and nothing is left behind. A run on what is left of that disk is refused before its load begins.
# Time limit: 1800 s
CAPTURE='backend: intel_pt, detail: light, buffer: 8MiB, bytes: 300MiB'
AT_SERVER='mkdir /disk && mount -t tmpfs -o size=600m none /disk && mkdir /disk/files && mount --bind /disk/files /home/files || exit 1
(
    until find /home/files -path "*/perf.data/data" -size +2048k | grep -q .; do sleep 0.1; done
    fallocate -l $(($(stat -f -c "%a * %S" /disk) - (200 << 20))) /disk/filler
) >/dev/null 2>&1 &'
afterwards() {
    "$work/bin/taillight" run "$work/headline.yaml" --out "$work/refused" >"$work/refusal" 2>&1
    refused=$?
}
. tests/lab/headline_lib.sh
expect '.joined >= 0.99 * .requests and .order_violations == 0'
jq -e '.intel_pt.ended | .broken == false and (.why | contains("MiB are left on the disk"))' "$work/run/server/capture.json" >/dev/null ||
    fail "the trace did not end: $(jq -c .intel_pt "$work/run/server/capture.json")"
tr -s '\n ' ' ' <"$work/verdict" | grep -q "the processor's trace ended early, after .* MiB are left on the disk" ||
    fail "the verdict does not say so: $(cat "$work/verdict")"
[ $refused -ne 0 ] && grep -q 'about 300 MiB of trace are expected, and the disk of .* has room for [0-9]* MiB' "$work/refusal" ||
    fail "not refused ($refused): $(cat "$work/refusal")"
grep -q 'loading 6' "$work/refusal" && fail "the load began: $(cat "$work/refusal")"
echo "exit $status; $(jq -c '[.requests, .joined]' "$summary"); $(jq -c '.intel_pt | .ended, .code' "$work/run/server/capture.json"); $refused: $(tail -n 1 "$work/refusal")"
