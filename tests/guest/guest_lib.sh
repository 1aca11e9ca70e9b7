# SPDX-License-Identifier: MIT
#
# What tests with a guest share: a folder of the test's own, its end, a small experiment for inside.
# Sourced.
set -u
work=$(mktemp -d /tmp/taillight-guest-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*"
    cat "$work/said" 2>/dev/null
    exit 1
}

# Hosts, server and load for an emulated machine: guest_experiment NAME RATE, more lines from stdin.
guest_experiment() {
    cat >"$work/$1.yaml" <<YAML
name: $1
hosts:
  client: {kind: netns, cores: [1]}
  server: {kind: netns, cores: [0]}
servers:
  cache: {host: server, kind: memcached, threads: 1, memory: 64MiB, shim: true}
workload:
  keys: {count: 200}
  values: {size: {fixed: 200}}
load: {rate: $2, duration: 2s, connections: 4, depth: 64, timeout: 10s, seed: 1}
YAML
    cat >>"$work/$1.yaml"
}

# As run_guest.sh, or $guest_runner, which takes its options, to its end: what it says is in $work/said, what it leaves in $work/out.
guest_run() {
    "${guest_runner:-tests/guest/run_guest.sh}" -o "$work/out" "$@" >"$work/said" 2>&1
    local status=$?
    [ $status -ne 77 ] || { tail -n 1 "$work/said"; exit 77; }
    [ $status -eq 0 ] || fail "exit $status: $(tail -n 3 "$work/said")"
}

expect() { # FILE FILTER [SHOWN]: what it left is so; else SHOWN of it is
    jq -e "$2" "$work/out/$1" >/dev/null ||
        fail "$1 is not as it should be: $2: $(jq -c "${3:-.}" "$work/out/$1" | cut -c1-3000)"
}

# The load itself may be inconclusive, emulated as it is; what was captured must be whole.
guest_run_is_whole() { # LEAST-REQUESTS
    grep -qE '^[04]$' "$work/out/verdict" || fail "the run ended with $(cat "$work/out/verdict" "$work/out/run.err" 2>/dev/null)"
    expect summary.json ".requests > $1 and .joined >= 0.98 * .requests"
}
