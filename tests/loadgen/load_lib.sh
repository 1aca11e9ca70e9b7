# SPDX-License-Identifier: MIT
#
# For test scripts that load a labserver, with all of tests/ports.sh. Sourced. Sets $build, $dir, which goes with the
# script, $port and $dir/workload.yaml, of small sets.
build=${BUILD:-build}
dir=$(mktemp -d "/tmp/load-test-$$-XXXXXX")
server=0
stop_server() {
    [ "$server" -ne 0 ] && kill "$server" && wait "$server" 2>/dev/null
    server=0
}
trap 'stop_server; rm -rf "$dir"' EXIT
fail() {
    echo "FAIL: $*"
    for f in "$dir"/out "$dir"/err; do [ -s "$f" ] && { echo "--- $f"; tr '\r' '\n' <"$f" | head -n 60; }; done
    exit 1
}
. "$(dirname "${BASH_SOURCE[0]}")/../ports.sh"
claim_port
printf 'keys: {count: 100}\nmix: {get: 0, set: 1}\n' >"$dir/workload.yaml"

# start_server LABSERVER-ARGUMENTS...: in place of the one before
start_server() {
    stop_server
    rm -f "$dir/ready" # what the one before said
    "$build/labserver" --port "$port" "$@" >"$dir/ready" 2>"$dir/server" &
    server=$!
    await grep -q ready "$dir/ready" || fail "labserver $* did not become ready"
}
records() { od -A n -t u8 -j 24 -N 8 "$1" | tr -d ' '; } # of a log's header
