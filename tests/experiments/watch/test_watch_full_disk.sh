#!/usr/bin/env bash
# Where slow requests cannot be saved, an interval says so once, with how many stretches of them there were and why; the
# watch goes on, and nothing is left where they were to be.
if [ -z "${OWN_DISK:-}" ] && [ "$(id -u)" = 0 ]; then
    exec env OWN_DISK=/mnt unshare -m bash -c 'mount -t tmpfs -o size=4m none "$OWN_DISK" && exec bash "$0"' "$0"
fi
. "$(dirname "$0")/watch_lib.sh"
dd if=/dev/zero of="$OWN_DISK/filler" bs=4k 2>/dev/null
begin_watch --interval 500ms --trigger '>1us' --save "$OWN_DISK"
unsaved() { jq -es "map(select(.unsaved > 0)) | length > 1" "$work/lines" >/dev/null; }
for _ in 1 2 3 4; do
    watched_load 300 3s 4
    unsaved && break
done
await unsaved || fail "nothing is said: $(cat "$work/lines")"
end_watch
all=$(jq -s 'map(.unsaved) | add' "$work/lines") intervals=$(jq -s 'map(select(.unsaved > 0)) | length' "$work/lines")
[ "$(jq -s 'map(.windows) | add' "$work/lines")" = 0 ] || fail "saved on a full disk: $(cat "$work/lines")"
[ "$(grep -c 'not saved: .*No space left on device' "$work/watch.err")" = "$intervals" ] ||
    fail "not one line for each of $intervals intervals: $(cat "$work/watch.err")"
grep -q "0 saved in $OWN_DISK, .*, $all could not be" "$work/watch.err" || fail "not $all in all: $(cat "$work/watch.err")"
[ "$(ls "$OWN_DISK")" = filler ] || fail "left: $(ls "$OWN_DISK")"
exit 0
