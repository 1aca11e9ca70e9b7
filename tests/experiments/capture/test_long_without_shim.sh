#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The same run with the shim's calls and without: each slow message has the same first cause, or all but 2 of 100 have. Both
# records are made in one run; then the shim's is taken away, as if it had not been there.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program jq jq

# compare NAME: of the run $work/NAME
compare() {
    local with=$work/$1 without=$work/$1.without same slow
    cp -r "$with" "$without"
    rm "$without"/server/calls*.tlog "$without"/server/connections.tlog
    jq 'del(.shim)' "$with/server/capture.json" >"$without/server/capture.json"
    jq '.servers |= map_values(.shim = false)' "$with/experiment.json" >"$without/experiment.json"
    "$taillight" analyze "$without" --quiet >/dev/null 2>"$work/analyze.err"
    [[ $? == [04] ]] || fail "$1: without the shim's calls it cannot be analyzed"
    [ "$(json "$with/summary.json" '$.calls.by_shim')" -gt 1000 ] || fail "$1: the shim recorded nothing"
    [ "$(json "$without/summary.json" '$.calls.by_shim')" = 0 ] || fail "$1: there is still a shim"
    [ "$(json "$without/summary.json" '$.calls.by_kernel')" -gt 1000 ] || fail "$1: the kernel recorded nothing"
    read -r same slow < <(sqlite3 -separator ' ' "$with/run.db" "attach '$without/run.db' as other;
        select sum(one.cause = another.cause), count(*) from main.slow one join other.slow another using (request)")
    echo "$1: $same of $slow slow messages have the same first cause; the shim's calls later than the kernel's by $(jq -r \
        '.calls.shim_minus_kernel | "\(.receives.median_us) us (receives), \(.sends.median_us) us (sends), medians"' "$with/summary.json")"
    [ "$slow" -ge 100 ] || fail "$1: $slow slow messages are too few"
    [ $((same * 100)) -ge $((slow * 98)) ] || fail "$1: first causes differ: $(sqlite3 "$with/run.db" "attach '$without/run.db' as other;
        select one.cause, another.cause, count(*) from main.slow one join other.slow another using (request)
        where one.cause <> another.cause group by 1, 2 order by 3 desc limit 5" | tr '\n' ';')"
}

# both NAME PROTOCOL, the server and whoever disturbs it from stdin
both() {
    { cat; echo 'capture: {backend: events, calls: kernel}'; } | experiment "$work/$1.yaml" netns 5000 6s
    sed -i "s/^workload:/&\\n  protocol: $2/" "$work/$1.yaml"
    "$taillight" run "$work/$1.yaml" --out "$work/$1" --quiet >/dev/null 2>"$work/run.err"
    [[ $? == [04] ]] || fail "$1: the run ended with an error"
    compare "$1"
}

both memcached memcached <<'END'
servers: {cache: {host: server, kind: memcached, threads: 1, shim: true}}
neighbours: {noisy: {host: server, kind: command, command: ["yes"], cores: [0], start: 2s, stop: 4s}}
END
both threads memcached <<'END'
servers: {cache: {host: server, kind: memcached, threads: 4, shim: true}}
neighbours: {noisy: {host: server, kind: command, command: ["yes"], cores: [0], start: 2s, stop: 4s}}
END
both redis redis <<'END'
servers: {cache: {host: server, kind: redis, shim: true}}
neighbours: {noisy: {host: server, kind: command, command: ["yes"], cores: [0], start: 2s, stop: 4s}}
END
