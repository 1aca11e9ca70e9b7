#!/usr/bin/env bash
# A protocol that the workload describes against a real server, which is asked how many requests it
# has seen: memcached's text protocol by what its lines end with, its binary one by its lengths.
# Runs beside others: it asserts counts, no times.
set -u
taillight=${BUILD:-build}/taillight
command -v memcached >/dev/null || { echo "no memcached" && exit 77; }
dir=$(mktemp -d /tmp/test-load-custom-XXXXXX)
server=0
cleanup() {
    [ "$server" -ne 0 ] && kill "$server" && wait "$server" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    cat "$dir"/out "$dir"/err "$dir"/log 2>/dev/null
    exit 1
}
. "$(dirname "$0")/../ports.sh"
claim_port
memcached -u "$(id -un)" -l 127.0.0.1 -p "$port" -U 0 >"$dir/log" 2>&1 &
server=$!
await ports_listening "$port" || fail "memcached does not listen"

stat_of() {
    exec 9<>"/dev/tcp/127.0.0.1/$port" || fail "the server cannot be asked"
    printf 'stats\r\nquit\r\n' >&9
    timeout 10 tr -d '\r' <&9 | awk -v name="$1" '$2 == name {print $3}'
    exec 9>&-
}
value() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\).*/\1/p" "$dir/out" | head -1
}
# The load's own exit code may be 4: the machine may be busy. What it counts must add up all the same.
load() { # options ...
    gets=$(stat_of cmd_get) sets=$(stat_of cmd_set) touches=$(stat_of cmd_touch)
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --sleep --quiet --json --rate 4k --duration 500ms \
        --timeout 20s --seed 5 --connections 4 "$@" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    [ "$(value scheduled)" -gt 1500 ] || fail "load $*: only $(value scheduled) requests"
    [ "$(value answered)" = "$(value scheduled)" ] || fail "load $*: not everything was answered"
    gets=$(($(stat_of cmd_get) - gets)) sets=$(($(stat_of cmd_set) - sets))
    touches=$(($(stat_of cmd_touch) - touches))
}

cat >"$dir/text.yaml" <<'END'
protocol: custom
mix: {get: 3, set: 1}
keys: {count: 50}
values: {size: {uniform: [1, 20000]}, expiry: 60s}
custom:
  requests:
    get: "touch {key} 60\r\n"
    set: "set {key} 0 {expiry_s} {value_size}\r\n{value:letters}\r\n"
  reply: {until: "\r\n", ok: [TOUCHED], stored: [STORED], miss: [NOT_FOUND], error: [ERROR, CLIENT_ERROR, SERVER_ERROR]}
END
load --workload "$dir/text.yaml"
[ $((touches + sets)) = "$(value scheduled)" ] || fail "text: the server has seen $touches touches and $sets sets"
[ "$sets" -gt 100 ] || fail "text: only $sets sets"
grep -q '"errors": {}' "$dir/out" || fail "text: errors"
[ "$(stat_of curr_items)" = 50 ] || fail "text: not every key was stored"

# What it does not know is an error, each in one reply, and the first is quoted.
sed 's/touch {key} 60/tuch {key}/' "$dir/text.yaml" >"$dir/wrong.yaml"
load --workload "$dir/wrong.yaml"
[ "$(value server_error)" = $(($(value scheduled) - sets)) ] || fail "wrong: not every one was an error"
grep -q 'ERROR' "$dir/out" || fail "wrong: the server is not quoted"

# Where there is an ok, what is none of them all is the client's error.
sed 's/ok: .TOUCHED., //; s/error: .*/ok: [YES]}/' "$dir/text.yaml" >"$dir/other.yaml"
load --workload "$dir/other.yaml"
[ "$(value client_error)" = "$touches" ] || fail "other: $touches replies should not be understood"

cat >"$dir/binary.yaml" <<'END'
protocol: custom
keys: {count: 500}
read_through: true
custom:
  requests:
    get: "{hex:8000}{key_size:u16}{hex:00000000}{rest_size-12:u32}{number:u32}{hex:0000000000000000}{key}"
    set: "{hex:8001}{key_size:u16}{hex:08000000}{rest_size-12:u32}{number:u32}{hex:00000000000000000000000000000000}{key}{value}"
  reply:
    length: {at: 8, adds: 12}
    number: {at: 12}
    ok: ["{hex:8100000004000000}"]
    miss: ["{hex:8100000000000001}"]
    stored: ["{hex:8101000000000000}"]
END
exec 9<>"/dev/tcp/127.0.0.1/$port" && printf 'flush_all\r\nquit\r\n' >&9 && cat <&9 >/dev/null; exec 9>&-
load --workload "$dir/binary.yaml"
[ $((gets + sets)) = $(($(value scheduled) + $(value begun))) ] ||
    fail "binary: the server has seen $gets gets and $sets sets"
[ "$(value begun)" -gt 50 ] && [ "$(value count)" = "$(value begun)" ] || fail "binary: what was missed was not stored"
[ "$(value misses)" = "$(value begun)" ] || fail "binary: not every miss was followed by a set"
grep -q '"errors": {}' "$dir/out" || fail "binary: errors"

# The option alone changes nothing.
load --workload "$dir/text.yaml" --protocol custom
[ $((touches + sets)) = "$(value scheduled)" ] || fail "--protocol custom: not what the workload describes"

timeout 10 "$taillight" load --sleep --server "127.0.0.1:$port" --protocol memcached --workload "$dir/binary.yaml" \
    --rate 1k --duration 100ms --quiet >"$dir/out" 2>"$dir/err"
case $? in 0 | 4) ;; *) fail "the description is not left unused with another protocol" ;; esac
