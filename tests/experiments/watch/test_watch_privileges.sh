#!/usr/bin/env bash
# Three capabilities suffice to watch a server by its port, two more to find another user's by its
# process; what is missing is named, and what watches is no root.
# Runs beside others: nothing is timed.
. "$(dirname "$0")/watch_lib.sh"
need_program setpriv util-linux
install -m 755 "$taillight" "$work/watcher" # where everybody may start it
for library in "$BUILD"/*.so; do [ ! -e "$library" ] || install -m 755 "$library" "$work/"; done

# Asks the server something ten times a second, until the end.
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
    for ((i = 0; i < 300; i++)); do
        printf 'get a\r\n' >&3 && read -r -u 3 _ && sleep 0.1
    done
}
ask &
asking=$!

# watch_as CAPABILITIES OPTIONS...: nobody, with those, for some intervals.
watch_as() {
    (cd / && timeout 60 setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps "$1" --ambient-caps "$1" \
        "$work/watcher" watch --interval 1s --for 3500ms --json "${@:2}") >"$work/lines" 2>"$work/watch.err"
}
seen() { jq -es 'map(.requests) | add >= 5' "$work/lines" >/dev/null; }
three=+bpf,+perfmon,+net_admin
# What reads the records has no capability any more: only the capture, which is its child, has.
watch_as $three --port "$port" &
watching=$!
reader() { pgrep -f "^$work/watcher watch" >"$work/reader.pid"; }
await test -s "$work/lines" || fail "three capabilities do not suffice"
reader || fail "there is no process of the watch"
for pid in $(cat "$work/reader.pid"); do
    ! grep -E '^Cap(Eff|Prm|Inh|Amb):' "/proc/$pid/status" | grep -qv ':[[:space:]]*0*$' || fail "who reads the records has capabilities"
done
wait $watching || fail "three capabilities do not suffice"
seen || fail "nothing is seen with three capabilities: $(cat "$work/lines")"
watch_as $three,+sys_ptrace,+dac_read_search --pid $server || fail "five capabilities do not suffice"
seen || fail "nothing is seen with five capabilities: $(cat "$work/lines")"

watch_as $three --pid $server
[ $? -eq 2 ] && grep -q 'CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH' "$work/watch.err" || fail "what --pid needs is not said"
watch_as -all --port "$port"
status=$?
[ $status -eq 1 ] && grep -q 'CAP_BPF' "$work/watch.err" || fail "exit $status without any, and CAP_BPF is not named"
kill $asking $server
exit 0
