#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# On Debian's own kernel (6.1, in a guest) the doctor and the events backend say what that kernel
# lacks, what can stand in does, and a run rebuilds every request. One boot for all of it.
set -u
work=$(mktemp -d /tmp/taillight-guest-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*"
    cat "$work/said"
    exit 1
}
cat >"$work/guest.yaml" <<'YAML'
name: guest
hosts:
  client: {kind: netns, cores: [1]}
  server: {kind: netns, cores: [0]}
servers:
  cache: {host: server, kind: memcached, threads: 1, memory: 64MiB, shim: true}
workload:
  keys: {count: 200}
  values: {size: {fixed: 200}}
load: {rate: 100, duration: 2s, connections: 4, depth: 64, timeout: 10s, seed: 1}
YAML
tests/guest/run_guest.sh -o "$work/out" -f "$work/guest.yaml" '
    uname -r >/out/release
    ./taillight doctor --json >/out/doctor.json || exit 1
    ./taillight capture --out /tmp/capture --backend intel_pt --no-events 2>/out/no-trace
    ./taillight run guest.yaml --out /tmp/run --quiet
    echo $? >/out/verdict
    cp /tmp/run/summary.json /tmp/run/server/capture.json /out
    dmesg | grep -E "WARNING:|BUG:|Oops" && exit 1
    exit 0' >"$work/said" 2>&1
status=$?
[ $status -ne 77 ] || { tail -n 1 "$work/said"; exit 77; }
[ $status -eq 0 ] || fail "exit $status"

expect() { # FILE FILTER
    jq -e "$2" "$work/out/$1" >/dev/null || fail "$1 is not as it should be: $2: $(jq -c . "$work/out/$1")"
}
item() { echo ".items[] | select(.name == \"$1\") | $2"; }
expect doctor.json ".host.kernel == \"$(cat "$work/out/release")\""
expect doctor.json "$(item BTF '.state == "yes"')"
expect doctor.json "$(item 'kernel function tracing' '.state == "yes"')"
expect doctor.json "$(item 'namespaces and veth' '.state == "yes"')"
case "$(cat "$work/out/release")" in
    6.1.*)
        # Every program loads but for those whose tracepoints came later.
        expect doctor.json '[.items[] | select(.group == "events backend" and .state != "yes") | .name] == ["sock_recv_length"]'
        expect doctor.json "$(item sk_data_ready '.found | test("sock_def_readable")')"
        expect doctor.json "$(item sock_recv_length '.missing | test("no tracepoint sock_recv_length")')"
        expect capture.json '.events.programs.sk_data_ready | .attached and .stand_in == "sock_def_readable"'
        ;;
esac
grep -q 'cannot record Intel PT: ' "$work/out/no-trace" || fail "Intel PT is not refused in words"

# The load itself may be inconclusive, emulated as it is; what was captured must be whole.
grep -qE '^[04]$' "$work/out/verdict" || fail "the run ended with $(cat "$work/out/verdict")"
expect summary.json '.requests > 100 and .joined >= 0.98 * .requests'
expect summary.json '[.causes[]?] | length > 0'
echo "$(jq .joined "$work/out/summary.json") requests joined on Linux $(cat "$work/out/release")"
