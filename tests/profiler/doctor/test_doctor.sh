#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight doctor`: its document is whole and agrees with what the kernel says; it needs no
# privileges to say which are missing; and it leaves nothing behind.
set -eu
taillight="$BUILD/taillight"
work=$(mktemp -d /tmp/prof-doctor-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*"
    exit 1
}

before=$(ip -br link show | wc -l)
"$taillight" doctor --json >"$work/doctor.json" 2>"$work/errors" || fail "exit $?"
[ -s "$work/errors" ] && fail "it wrote to stderr: $(cat "$work/errors")"
[ "$(ip -br link show | wc -l)" = "$before" ] || fail "it left network devices behind"
"$taillight" doctor --facts >"$work/facts.json" || fail "--facts: exit $?"
python3 - "$work/doctor.json" "$work/facts.json" <<'PYTHON'
import json, os, re, sys
document = json.load(open(sys.argv[1]))
host, items = document["host"], document["items"]
assert host["kernel"] == os.uname().release, host
assert host["cores"] == os.cpu_count(), host
assert host["boot_id"] == open("/proc/sys/kernel/random/boot_id").read().strip(), host
names = [item["name"] for item in items]
assert len(set(names)) == len(names), "an item stands twice"
for item in items:
    assert set(item) == {"group", "name", "state", "found", "gives", "missing", "how"}, item
    assert item["state"] in ("yes", "limited", "no"), item
    assert item["gives"], item
    if item["state"] == "yes":
        assert item["found"] and not item["missing"], item
    else:
        assert item["missing"] and item["how"], item
by_name = {item["name"]: item for item in items}
for name in ("cores", "TSC", "BTF", "BPF (events backend)", "software receive stamps", "Intel PT",
             "shim", "namespaces and veth", "memcached", "ssh"):
    assert name in by_name, name
assert (by_name["BTF"]["state"] == "yes") == os.path.exists("/sys/kernel/btf/vmlinux")
assert (by_name["Intel PT"]["state"] == "no") == \
    (not os.path.exists("/sys/bus/event_source/devices/intel_pt"))
shim = os.path.join(os.path.dirname(os.environ["BUILD"] + "/"), "libtaillight-shim.so")
assert (by_name["shim"]["state"] == "yes") == os.path.exists(shim)
if by_name["BPF (events backend)"]["state"] != "no":
    named = [item["name"] for item in items if item["group"] == "events backend"]
    table = open("profiler/bpf/events.tbl.h").read()
    assert named == re.findall(r'^EVENT_PROGRAM\((\w+),', table, re.M), named
facts = json.load(open(sys.argv[2]))
tried = {"transmit stamps by sockops", "BPF (events backend)", "Intel PT", "samples backend", "kernel function tracing"}
assert facts["host"] == host, facts["host"]
assert [item["name"] for item in facts["items"]] == \
    [item["name"] for item in items if item["group"] != "events backend" and item["name"] not in tried]
PYTHON

# The time of a call is read without rdtscp, which some virtual machines lack: the TSC is fit without.
objdump -d "$BUILD/libtaillight-shim.so" >"$work/shim"
grep -q 'rdtsc$' "$work/shim" || [ "$(uname -m)" != x86_64 ] || fail "the shim's code has no rdtsc"
! grep -q rdtscp "$work/shim" || fail "the shim needs rdtscp"

"$taillight" doctor >"$work/people" || fail "exit $?"
[ "$(awk 'length > 100' "$work/people" | wc -l)" -eq 0 ] || fail "lines longer than 100 columns"
[ "$(wc -l <"$work/people")" -le 60 ] || fail "more than a screen or so: $(wc -l <"$work/people") lines"
"$taillight" doctor >/dev/full 2>"$work/errors" && fail "a full disk went unnoticed"
grep -q "cannot print the doctor's findings: No space left" "$work/errors" || fail "a full disk is not named"
status=0
"$taillight" doctor host surplus 2>"$work/errors" || status=$?
[ "$status" -eq 2 ] || fail "a surplus argument: exit $status"
grep -q "one host, not 2" "$work/errors" || fail "the surplus argument: $(cat "$work/errors")"

# Without privileges it still ends well, and names those that are missing.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    install -m 755 "$taillight" "$work/taillight"
    chmod 755 "$work"
    (cd / && setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
        --inh-caps=-all "$work/taillight" doctor --json) >"$work/unprivileged.json" ||
        fail "without privileges: exit $?"
    python3 - "$work/unprivileged.json" <<'PYTHON'
import json, sys
by_name = {item["name"]: item for item in json.load(open(sys.argv[1]))["items"]}
bpf = by_name["BPF (events backend)"]
assert bpf["state"] == "no" and "CAP_BPF" in bpf["missing"] and "CAP_PERFMON" in bpf["missing"], bpf
assert by_name["namespaces and veth"]["state"] == "no"
PYTHON
fi
echo "doctor: $(wc -l <"$work/people") lines for people"
