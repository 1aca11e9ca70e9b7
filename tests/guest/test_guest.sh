#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# On Debian's own kernel (6.1, in a guest) the doctor and the events backend say what that kernel
# lacks, what can stand in does, and a run rebuilds every request; in the long tests calls, connections and waits are
# recorded as on this one, and hops do what they do here. One boot for all of it.
# Runs beside others: its machine is emulated, and its timings mean nothing.
. tests/guest/guest_lib.sh
. tests/ports.sh # is_long
echo "capture: {calls: kernel}" | guest_experiment guest 100
: "${BUILD:=build}"
files=()
programs=0
if is_long; then # half of the time
    for program in events/test_events_{calls,connections,waits} capsule/test_{hop,carry}_programs; do
        files+=(-f "$BUILD/tests/profiler/$program")
        programs=$((programs + 1))
    done
    cmocka=$(readlink -f "$(ldd "${files[1]}" | awk '/cmocka/ { print $3 }')")
    files+=(-f "$BUILD/libtaillight.so" -f "$cmocka")
fi
guest_run -f "$work/guest.yaml" "${files[@]}" '
    uname -r >/out/release
    if [ -e libtaillight.so ]; then
        mkdir -p '"$BUILD"' && mv libtaillight.so '"$BUILD"' && mv libcmocka.so.* '"$BUILD"'/libcmocka.so.0
        for program in test_*; do
            LD_LIBRARY_PATH='"$BUILD"' ./$program || echo "$program: not passed"
        done >/out/programs 2>&1
    fi
    ./taillight doctor --json >/out/doctor.json || exit 1
    ./taillight capture --out /tmp/capture --backend intel_pt --no-events 2>/out/no-trace
    ./taillight run guest.yaml --out /tmp/run --quiet 2>/out/run.err
    echo $? >/out/verdict
    cp /tmp/run/summary.json /tmp/run/server/capture.json /out
    dmesg | grep -E "WARNING:|BUG:|Oops" && exit 1
    exit 0'

if [ $programs -gt 0 ]; then
    [ "$(grep -c 'PASSED  ] [1-9]' "$work/out/programs")" -eq $programs ] && ! grep -q 'not passed' "$work/out/programs" || fail "$(cat "$work/out/programs")"
fi
item() { echo ".items[] | select(.name == \"$1\") | $2"; }
expect doctor.json ".host.kernel == \"$(cat "$work/out/release")\""
expect doctor.json "$(item BTF '.state == "yes"')"
expect doctor.json "$(item 'kernel function tracing' '.state == "yes"')"
expect doctor.json "$(item 'namespaces and veth' '.state == "yes"')"
case "$(cat "$work/out/release")" in
    6.1.*)
        # Every program loads; functions stand in for tracepoints that came later.
        expect doctor.json '[.items[] | select(.group == "events backend" and .state != "yes") | .name] == []'
        expect doctor.json "$(item sk_data_ready '.found | test("sock_def_readable")')"
        expect doctor.json "$(item sock_recv_length '.found | test("tcp_recvmsg")')"
        expect doctor.json "$(item tcp_sendmsg_locked '.found | test("tcp_sendmsg")')"
        expect capture.json '.events.programs.sk_data_ready | .attached and .stand_in == "sock_def_readable"'
        ;;
esac
grep -q 'cannot record Intel PT: ' "$work/out/no-trace" || fail "Intel PT is not refused in words"

# The kernel's record of the server's calls is the shim's, on the load's four connections and on the one
# that asked before what the server speaks. A receive call of a starved guest brings several requests.
expect summary.json '.calls.shim_minus_kernel | .connections >= 4 and .sends.both >= 100 and
    ([.receives, .sends | .both >= 30 and .other_bytes + .shim_only + .kernel_only == 0] | all)' .calls
guest_run_is_whole 100
expect summary.json '[.causes[]?] | length > 0'
echo "$(jq .joined "$work/out/summary.json") requests joined on Linux $(cat "$work/out/release")"
