#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Connections that end after so many requests: each has just as many, is opened again, and no request is lost for it.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/load_lib.sh"
command -v jq >/dev/null || { echo 'jq is not installed'; exit 77; }
# A client that had no core for most of a load is tried again with one of twice the length: $times that of the first.
tries() { # COMMAND...: a load of "$((times * N))ms"
    for times in 1 2 4 8 16; do
        "$@"
        local status=$?
        grep -qE 'no core for so long|had its core for only' "$dir/err" || break
    done
    return $status
}
load_lab() { # MILLISECONDS OPTIONS...
    timeout 60 "$build/taillight" load --server "127.0.0.1:$port" --protocol lab --duration $((times * $1))ms --quiet \
        "${@:2}" >"$dir/out" 2>"$dir/err"
}
session() { # OPTIONS...: all is answered; the document is $dir/out
    rm -rf "$dir/s"
    tries load_lab 500 --timeout 20s --json --samples "$dir/s" "$@"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    holds "load $*" '.scheduled > 30 and .answered == .scheduled and .errors == {}'
    holds "load $*" '.sessions.ended == .connections_ended and .reconnects == .sessions.opening.count'
    grep -qE 'broke|restarted' "$dir/err" && fail "load $*: held against the server"
}
holds() { jq -e "$2" "$dir/out" >/dev/null || fail "$1: $(jq -c '[.scheduled, .answered, .errors, .sessions, .connections_ended, .reconnects]' "$dir/out")"; }
# Of the connections' requests: MOST of each; as many of each of which sessions ended, but for the first CONNECTIONS.
counted() { # MOST CONNECTIONS
    python3 - "$dir/s" "$1" "$2" "$(jq .sessions.ended "$dir/out")" <<'PY' || fail 'the samples'
import collections, struct, sys
folder, most, at_once, ended = sys.argv[1], *map(int, sys.argv[2:])
samples = open(folder + "/samples.tlog", "rb").read()[128:]
logged = open(folder + "/connections.tlog", "rb").read()[128:]
of = collections.Counter(struct.unpack_from("<I", samples, at + 80)[0] for at in range(0, len(samples), 96))
whole = sum(count == most for count in of.values())
assert max(of.values()) <= most, max(of.values())
assert whole >= ended - at_once, (whole, ended)
assert ended <= len(logged) // 64 <= ended + at_once, (ended, len(logged) // 64)
PY
}
refused() { # text, options ...
    timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --rate 1k "${@:2}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: not refused"
}
start_server --protocol lab
refused '--session excludes --cluster' --protocol redis --cluster --session 2
refused '--session excludes --reconnect 0' --protocol lab --reconnect 0 --session 2

session --rate 2k --sleep --connections 8 --session 10
counted 10 8
holds 'ten each' '.sessions.requests == 10 and .sessions.ended > 50'
# One each, of two threads; and more in flight than a session has.
session --rate 1k --sleep --connections 8 --threads 2 --session 1
counted 1 8
holds 'one each' '.sessions.ended > 300'
session --rate 4k --sleep --connections 4 --depth 16 --session 3
counted 3 4
# A closed loop, with users who think in front of each session, too: fifty times 10 ms in each 500.
session --rate max --connections 4 --session 5
counted 5 4
session --rate max --connections 10 --think fixed:10ms --session 2
counted 2 10
holds 'users' ".scheduled <= 10 + 500 * $times and .sessions.ended > 20"
# Of agents; those that measure count together.
session --agent symmetric,connections=4,rate=1k --agent throughput,connections=2,rate=500 --session 5 --depth 1
holds 'each agent' '.agents.list | map(.report.sessions.ended > 30) == [true, true]'
holds 'agents' '.sessions.ended == .agents.list[0].report.sessions.ended'
tries load_lab 200 --rate 1k --sleep --session 10
grep -qE 'sessions +of 10 requests each: [0-9]+ ended; .* to open the next one' "$dir/out" || fail 'for people'
echo 'sessions end where they should'
