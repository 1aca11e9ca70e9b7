#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Over TLS a server ends each connection behind its reply. In a closed loop the next one's request leaves with the end of
# its handshake: two segments with data, not three; in an open one it may be due later. Each is answered once.
# Runs beside others: it asserts counts, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" handshakes
have python3 && have jq && have openssl || { echo "not installed:$missing" && exit 77; }
printf 'keys: {count: 10}\nmix: {get: 1}\n' >"$dir/workload.yaml"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" \
    -subj /CN=test -days 2 2>>"$dir/log" || fail 'no certificate'
load() { # OPTIONS...: all is answered, by resumed sessions but for the first ones
    : >"$dir/segments"
    start python3 "$here/segments_server.py" PORT "$dir/cert.pem" "$dir/key.pem" "$dir/segments"
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol http --workload "$dir/workload.yaml" --tls-insecure \
        --duration 500ms --timeout 20s --json --quiet "$@" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    jq -e '.scheduled > 3 and .answered == .scheduled and .errors == {} and .tls.resumed.count > 1' "$dir/out" >/dev/null ||
        fail "load $*: $(jq -c '[.scheduled, .answered, .errors, .tls]' "$dir/out")"
    sed -i -n 's/^GET //p' "$dir/segments" # others ask what it speaks
    [ "$(wc -l <"$dir/segments")" -eq "$(jq .answered "$dir/out")" ] || fail "load $*: the server saw other requests"
}
for stamps in user auto; do
    load --rate max --connections 1 --depth 1 --stamps $stamps
    tail -n +2 "$dir/segments" | grep -qvx 2 && fail "--stamps $stamps: segments: $(tail -n +2 "$dir/segments" | sort | uniq -c)"
done
load --rate 40 --connections 1 --depth 1
grep -qvx '[23]' "$dir/segments" && fail "an open loop: segments: $(sort "$dir/segments" | uniq -c)"
echo "requests left with the ends of handshakes"
