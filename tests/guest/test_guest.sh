#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# On Debian's own kernel (6.1, in a guest) the doctor and the events backend say what that kernel
# lacks, what can stand in does, and a run rebuilds every request. One boot for all of it.
# Runs beside others: its machine is emulated, and its timings mean nothing.
. tests/guest/guest_lib.sh
guest_experiment guest 100 </dev/null
guest_run -f "$work/guest.yaml" '
    uname -r >/out/release
    ./taillight doctor --json >/out/doctor.json || exit 1
    ./taillight capture --out /tmp/capture --backend intel_pt --no-events 2>/out/no-trace
    ./taillight run guest.yaml --out /tmp/run --quiet 2>/out/run.err
    echo $? >/out/verdict
    cp /tmp/run/summary.json /tmp/run/server/capture.json /out
    dmesg | grep -E "WARNING:|BUG:|Oops" && exit 1
    exit 0'

item() { echo ".items[] | select(.name == \"$1\") | $2"; }
expect doctor.json ".host.kernel == \"$(cat "$work/out/release")\""
expect doctor.json "$(item BTF '.state == "yes"')"
expect doctor.json "$(item 'kernel function tracing' '.state == "yes"')"
expect doctor.json "$(item 'namespaces and veth' '.state == "yes"')"
case "$(cat "$work/out/release")" in
    6.1.*)
        # Every program loads but for those whose tracepoints came later.
        expect doctor.json '[.items[] | select(.group == "events backend" and .state != "yes") | .name] == ["sock_recv_length"]'
        expect doctor.json "$(item sk_data_ready '.found | test("sock_def_readable")')"
        expect doctor.json "$(item sock_recv_length '.missing | test("no tracepoint sock_recv_length")')"
        expect capture.json '.events.programs.sk_data_ready | .attached and .stand_in == "sock_def_readable"'
        ;;
esac
grep -q 'cannot record Intel PT: ' "$work/out/no-trace" || fail "Intel PT is not refused in words"

guest_run_is_whole 100
expect summary.json '[.causes[]?] | length > 0'
echo "$(jq .joined "$work/out/summary.json") requests joined on Linux $(cat "$work/out/release")"
