#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What a capture that is killed has in /dev/shm is removed by the next one, or by `taillight doctor --restore`,
# and said; the server in it goes on, and is seen by the next. What others hold, or what is not ours, stays.
# Runs beside others: it asserts no times.
. tests/experiments/run_lib.sh
if [ -z "${OWN_SHM:-}" ]; then # where no other test's capture comes first
    rm -rf "$work"
    unshare -m true 2>/dev/null || skip "a /dev/shm of its own takes root"
    OWN_SHM=1 exec unshare -m bash -c 'mount -t tmpfs none /dev/shm && exec bash "$0"' "$0"
fi
build=$(cd "$BUILD" && pwd)
rings=$(mktemp -d -u /dev/shm/taillight-test-XXXXXX)
cleanup() {
    kill -9 $server $captures 2>/dev/null
    rm -rf "$rings"* "$work"
}
server='' captures='' last=''
capture() { # NAME DIRECTORY
    "$taillight" capture --backend none --port "$port" --shim "$2" --out "$work/$1" --quiet <&4 >"$work/$1.out" 2>"$work/$1.err" &
    last=$! captures="$captures $!"
    await grep -q '"ready"' "$work/$1.out" || fail "capture $1 does not begin"
}
ask() {
    "$taillight" load --server 127.0.0.1:$port --rate 500 --connections 2 --duration 300ms --sleep --stamps user \
        --quiet >/dev/null 2>"$work/load.err" || [ $? -eq 4 ] || fail "the server does not answer"
}
said() { grep -c 'removed 1 directory of the shim.s, left by captures that were killed' "$work/$1.err"; }
end() { kill -9 "$1" && wait "$1" 2>/dev/null; }
mkfifo "$work/input"
exec 4<>"$work/input" # whose end would end the captures
claim_port

# Neither is ours: one has another file beside, one only names like ours.
mkdir -m 700 "$rings-other" "$rings-names" "$rings-beside"
echo precious >"$rings-names/control"
capture killed "$rings"
killed=$last
cp "$rings/control" "$rings-other" && echo precious >"$rings-other/file"
TAILLIGHT_SHIM_DIR="$rings" LD_PRELOAD="$build/libtaillight-shim.so" "$build/labserver" --port "$port" >"$work/server.out" 2>"$work/server.err" &
server=$!
await grep -q "$rings/pool-" /proc/$server/maps || fail "the server is not in the capture"
ask
capture lives "$rings-lives"
end $killed
[ "$(said lives)" = 0 ] && [ -e "$rings/control" ] || fail "the directory of a capture that lives was taken"
capture next "$rings-next"
next=$last
[ "$(said next)" = 1 ] || fail "nothing is said: $(cat "$work/next.err")"
[ ! -e "$rings" ] || fail "the directory of a capture that was killed stays"
[ -e "$rings-lives/control" ] && [ -e "$rings-other/file" ] && [ -e "$rings-names/control" ] && [ -d "$rings-beside" ] ||
    fail "taken, too: $(ls -d "$rings"*)"
ask
# Its memory is given back, though the server has it mapped.
held=$(awk -v name="$rings/pool" 'index($0, name) {found = 1} found && /^Rss:/ {kb += $2; found = 0} END {print kb + 0}' /proc/$server/smaps)
[ "$held" -le 64 ] || fail "the server holds $held KiB of the old memory"
end $next

"$taillight" doctor --restore >"$work/restored" || fail "doctor --restore: exit $?"
grep -q '^1 directory of the shim.s removed' "$work/restored" || fail "$(cat "$work/restored")"
[ ! -e "$rings-next" ] && [ -e "$rings-lives/control" ] || fail "left: $(ls -d "$rings"*)"

# The server has stayed, and attaches where there is a capture again.
capture again "$rings"
ask
kill $last
wait $last || fail "the last capture: exit $?"
calls=$(json "$work/again/capture.json" '$.shim.calls')
[ "${calls:-0}" -ge 100 ] || fail "the server is not seen any more: $calls calls"
echo "a server that stayed through it: $calls calls, $held KiB held"
