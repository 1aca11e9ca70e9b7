#!/usr/bin/env bash
# HTTP/2 in an experiment, several streams on each connection: NGINX, and a server that answers what came together in reverse.
# Each reply is found where its own bytes are, so that all stamps are there and none is out of order.
# Runs beside others: requests are counted, not timed.
. "$(dirname "$0")/../run_lib.sh"
need_capture
PATH=$PATH:/usr/sbin
need_program nginx nginx-light
need_program jq jq
need_program python3 python3

run_http2() { # SERVER
    experiment "$work/web.yaml" netns 500 2s <<END
servers:
  web: $1
END
    sed -i 's/^workload:/&\n  protocol: http2\n  arrivals: "lognormal:1,2"/; s/connections: 16, depth: 64, timeout: 1s/connections: 2, depth: 64, timeout: 20s/' \
        "$work/web.yaml"
    rm -rf "$work/run"
    timeout 120 "$taillight" run "$work/web.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
    case $? in 0 | 4) ;; *) fail "$1: the run failed" ;; esac
    jq -e '.answered == .scheduled and .errors == {} and .connections_ended == 0' "$work/run/client/load.json" >/dev/null ||
        fail "$1: not everything was answered"
    jq -e '.joined * 100 >= .requests * 99 and .order_violations == 0' "$work/run/summary.json" >/dev/null ||
        fail "$1: $(jq -c '[.requests, .joined, .order_violations]' "$work/run/summary.json")"
}
# Replies that came before one of a request sent earlier on the same connection.
overtaken() {
    python3 - "$work/run/client/samples.tlog" <<'PYTHON'
import struct, sys
log, furthest, count = open(sys.argv[1], 'rb').read(), {}, 0
samples = [struct.unpack_from('<10QI', log, at) for at in range(128, len(log), 96)]
for sample in sorted(samples, key=lambda sample: (sample[10], sample[6])):
    count += sample[9] < furthest.get(sample[10], 0)
    furthest[sample[10]] = max(sample[9], furthest.get(sample[10], 0))
print(count)
PYTHON
}

run_http2 '{kind: nginx, page: 2KiB, port: 8081}'
grep -q 'listen .*:8081 http2;' "$work/run/nginx-web/nginx.conf" || fail 'nginx was not told'
server=$(cd "$(dirname "$0")/../../loadgen/servers" && pwd)/http2_server.py
run_http2 "{kind: command, command: [python3, \"$server\", \"{port}\", backwards, \"{address}\"], port: 8082}"
count=$(overtaken)
[ "$count" -gt 50 ] || fail "only $count replies overtook another"
echo "$(jq .joined "$work/run/summary.json") joined, of which $count were overtaken by replies to later requests"
