#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path as one (tests/lab/headline.yaml): the controller out here, client and server behind ssh on the lab's
# machine, each in a network of its own, with NICs between them whose clocks drift; Intel PT of the server's cores by stock
# perf, the shim, and a server in which a function is slow now and then. The requests join with all stamps in order, the trace
# decodes, and that function is the top cause.
# Its machine is emulated, and its timings mean nothing.
# Time limit: 900 s
set -u
for program in ssh ssh-keygen /usr/sbin/sshd jq; do
    command -v $program >/dev/null || { echo "there is no $program (openssh-client, openssh-server, jq)"; exit 77; }
done
if [ "${1:-}" != inside ]; then # while there is a network
    made=$(tests/lab/make_lab.sh "$BUILD") || { tail -n 1 <<<"$made"; exit 77; }
fi
. "$(dirname "$0")/../guest/tap_lib.sh"
: "${FAULT:=slow,30ms,300ms}" "${RATE:=20}"
for name in client server; do
    port=23
    [ $name = server ] || port=22
    guest_ssh $name 10.78.0.2:$port \
        "SetEnv PATH=/usr/sbin:/usr/bin:/usr/lib/busybox TAILLIGHT_STATE_DIR=/run/state-$name" \
        "ForceCommand nsenter --net=/proc/\$(cat /run/$name.pid)/ns/net bash -c \"\$SSH_ORIGINAL_COMMAND\""
done
cat >"$work/inside" <<INSIDE
$guest_begin
mkdir -p /run/sshd /home/files
chmod 600 host_key
insmod phcpair.ko || exit 1
for name in client server; do
    unshare -n sleep 100000 &
    echo \$! >/run/\$name.pid
    until [ "\$(readlink /proc/\$(cat /run/\$name.pid)/ns/net)" != "\$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
    card=phc\$([ \$name = client ] && echo 0 || echo 1)
    ip link set \$card netns \$(cat /run/\$name.pid)
    nsenter --net=/proc/\$(cat /run/\$name.pid)/ns/net bash -c "ip link set lo up; ip addr add 10.77.0.\$((\${card#phc} + 1))/24 dev \$card; ip link set \$card up"
    # As a card's own interrupt would: the pair delivers on the core that sent.
    [ \$name = client ] || nsenter --net=/proc/\$(cat /run/server.pid)/ns/net unshare -m bash -c "mount -t sysfs none /sys; echo 1 >/sys/class/net/phc1/queues/rx-0/rps_cpus" || exit 1
    /usr/sbin/sshd -D -e -f sshd_\$name 2>/run/sshd-\$name.log &
done
for name in client server; do
    tries=600
    until grep -q 'Server listening' /run/sshd-\$name.log; do
        tries=\$((tries - 1)); [ \$tries -gt 0 ] || { cat /run/sshd-*.log; exit 1; }
        sleep 0.1
    done
done
$guest_wait
cp /home/faults /out/faults 2>/dev/null
[ -z "\$(ls -A /home/files)" ] || { echo 'something was left'; ls -R /home/files; exit 1; }
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
sed "s|SSH_CONFIG|$work/ssh_config|; s|FAULT|$FAULT|; s|RATE|$RATE|" tests/lab/headline.yaml >"$work/headline.yaml"
guest_runner=tests/lab/lab.sh guest_start -c 4 -t 600 -p sshd -o "$work/out" -f "$work/inside" -f "$work/sshd_client" \
    -f "$work/sshd_server" -f "$work/host_key" -f "$work/user_key.pub" 'bash inside'
"$BUILD/taillight" run "$work/headline.yaml" --out "$work/run" >"$work/verdict" 2>&1
status=$?
guest_end
if [ -n "${KEEP:-}" ]; then
    cp -r "$work/run" "$work/out" "$KEEP"
    cp "$work/verdict" "$KEEP/verdict"
fi
[ $status = 0 ] || [ $status = 4 ] || fail "the run: exit $status: $(cat "$work/verdict")"
summary=$work/run/summary.json
expect() { # FILTER
    jq -e "$1" "$summary" >/dev/null || fail "not $1: $(jq -c '[.requests, .joined, .order_violations, .trace]' "$summary"); $(cat "$work/verdict")"
}
jq -e '.stamps.hw >= 0.95 * .answered' "$work/run/client/load.json" >/dev/null ||
    fail "the NIC's stamps: $(jq -c '[.answered, .stamps, .hardware_stamps]' "$work/run/client/load.json")"
expect '.joined >= 0.99 * .requests and .order_violations == 0'
expect '.join | .nic_stamps >= 0.9 * (.nic_stamps + .without_nic_stamp + .wrong_nic_stamps) and .nic_stamps > 0'
expect '.trace.slow_traced_ns >= 0.95 * .trace.slow_ns and .trace.functions > 0'
# The function that was made slow, or called over and over, is a cause; that it is the first takes a machine whose
# host does not take the emulated cores away for as long.
expect '[.causes[] | select(.class == "function" and (.cause | test("slow_function|extra_call")))] | .[0].messages >= 1'
# What ran is what the emulator knows: by libipt with the code as it ran nothing is missing and nothing more; by Taillight, with
# the kernel's code as perf copied it, hardly anything (an error leaves out what comes up to the next PSB).
"$BUILD/tests/lab/lab_check" "$work/run/server/perf.data" "$work/out/lab/cpu0.truth" >"$work/check" 2>"$work/said" ||
    fail "against the truth: $(cat "$work/check")"
"$BUILD/taillight" analyze "$work/run/server/perf.data" --symfs "$work/run/server/symfs" --json >"$work/decoded" 2>"$work/said"
jq -se '([.[0].streams[].instructions] | add) as $seen | $seen <= .[1].true_instructions and $seen >= 0.98 * .[1].true_instructions' \
    "$work/decoded" "$work/check" >/dev/null ||
    fail "Taillight decodes $(jq -c '[.streams[] | [.instructions, .errors]]' "$work/decoded"); $(cat "$work/check")"
echo "exit $status; $(jq -c '[.requests, .joined, [.causes[] | select(.class == "function") | [.cause, .messages]][:2]]' "$summary"); $(cat "$work/check"); by Taillight $(jq -c '[.streams[] | [.instructions, .errors]]' "$work/decoded")"
