#!/usr/bin/env bash
# A machine behind ssh that means harm: whatever it answers, or does not, the command that asked it ends
# by itself with an error in plain words that names it, and what to look at; nothing is read too far (built with SAN=address,undefined,
# this sees it), no escape sequence comes through, no log grows without end.
# Runs beside others: it waits most of the time, and looks at words and at ends.
# Time limit: 900 s
. "$(dirname "$0")/../run_lib.sh"
need_program python3 python3
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$work/bin"
cp "$here/../ssh/hostile_ssh.py" "$work/bin/ssh"
chmod 755 "$work/bin/ssh"
export ASAN_OPTIONS="log_path=$work/sanitizer:detect_leaks=0" UBSAN_OPTIONS="log_path=$work/sanitizer:print_stacktrace=1"
export TMPDIR="$work"

check_end() { # NAME WANTED STATUS STDERR
    local name=$1 wanted=$2 status=$3 said=$4 found
    [ "$status" -ne 124 ] || fail "$name: does not end"
    [ "$status" -eq "$wanted" ] || fail "$name: exit $status, not $wanted: $(tail -n 1 "$said")"
    [ "$name" = "program prints escapes" ] || grep -qE 'taillight: .*host far' "$said" || fail "$name: does not name the host: $(tail -n 1 "$said")"
    [ "$status" -eq 1 ] || grep -qE '\?|write it like' "$said" || fail "$name: does not say what to look at"
    [[ $name == program* ]] || ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" "$said" || fail "$name: control characters: $(cat -v "$said")"
    for found in "$work"/sanitizer*; do
        [ ! -e "$found" ] || fail "$name: $(head -n 30 "$found")"
    done
    [ "$(wc -c <"$said")" -lt 10000 ] || fail "$name: $(wc -c <"$said") bytes of complaint"
    echo "$status $name: $(tail -n 1 "$said" | cut -c1-200)"
}

HOSTILE=list "$work/bin/ssh" >"$work/ways" || fail "no list of ways"
[ "$(wc -l <"$work/ways")" -ge 30 ] || fail "only $(wc -l <"$work/ways") ways"
# The files of doctor's and of its links: none outgrows its limit.
while read -r wanted way; do
    [[ $way == *${ONLY:-}* ]] || continue
    (ulimit -f $((80 << 10)) # KiB
        HOSTILE=$way PATH="$work/bin:$PATH" timeout 150 "$taillight" doctor far --directory /tmp --quiet \
            >"$work/out" 2>"$work/way.err" </dev/null)
    check_end "$way" "$wanted" $? "$work/way.err"
done <"$work/ways"

# On a terminal, what a program there prints commands nothing.
HOSTILE="program prints escapes" PATH="$work/bin:$PATH" timeout 150 script -qec \
    "'$taillight' doctor far --directory /tmp --quiet" "$work/terminal" >"$work/out" 2>&1 </dev/null
grep -q 'owned' "$work/terminal" || fail "nothing came through: $(cat -v "$work/terminal")"
! grep -q "$(printf '\033')]0" "$work/terminal" || fail "escapes came through: $(cat -v "$work/terminal")"

# What it sends of a folder: only files and folders stay.
mkdir "$work/far" "$work/here"
echo good >"$work/far/calls.tlog"
ln -s /etc/passwd "$work/far/events.tlog"
mkfifo "$work/far/samples.tlog"
cat >"$work/link.json" <<END
{"host": "far", "address": "far", "ssh": ["ssh"], "base": "/tmp", "directory": "/tmp/taillight-0-X", "server_cores": ""}
END
cat >"$work/bin/ssh" <<'END'
#!/usr/bin/env python3
import io, os, struct, tarfile, sys, json
def frame(kind, body): return struct.pack("<I", len(body)) + kind + body
raw = io.BytesIO()
with tarfile.open(fileobj=raw, mode="w") as tar:
    tar.add(os.environ["FAR"], arcname=".")
    for name in os.environ["OUTSIDE"].split():
        tar.addfile(tarfile.TarInfo(name))
    entry = tarfile.TarInfo("program")
    entry.mode, entry.size = 0o6777, 4
    tar.addfile(entry, io.BytesIO(b"evil"))
out = sys.stdout.buffer
out.write(frame(b"J", b"{}") + frame(b"B", b"\1" + raw.getvalue()) + frame(b"J", json.dumps({"type": "ended", "status": 0}).encode()))
out.flush()
os.read(0, 1 << 16)
END
for outside in "" "../outside /tmp/taillight-hostile-outside"; do
    [ -n "$outside" ] && wanted=1 || wanted=2 # 1: tar does not unpack that
    FAR="$work/far" OUTSIDE=$outside PATH="$work/bin:$PATH" timeout 60 "$taillight" link "$work/link.json" \
        --into "$work/here" -- tar >"$work/out" 2>"$work/tar.err" </dev/null
    check_end "a folder of other things" "$wanted" $? "$work/tar.err"
done
[ -z "$(find "$work/here" ! -type f ! -type d)" ] || fail "left: $(find "$work/here" ! -type f ! -type d)"
[ -z "$(find "$work/here" -perm /6000)" ] || fail "setuid: $(find "$work/here" -perm /6000)"
[ ! -e "$work/outside" ] && [ ! -e /tmp/taillight-hostile-outside ] || fail "it reached outside of its folder"
