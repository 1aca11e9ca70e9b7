# SPDX-License-Identifier: MIT
#
# Runs tests/lab/headline.yaml on the lab's machine: the controller out here, client and server behind ssh, each in a network of
# its own, with NICs between them whose clocks drift; Intel PT of the server's cores by stock perf, the shim, and a server in
# which a function is slow now and then. Sourced; expects $BUILD. SERVER, THREADS, RATE, DURATION, SLICE, MIX and CAPTURE are put into the experiment;
# AT_SERVER is run in the server's network before it, with the programs and files of BRINGING, options of run_guest.sh; PAIR are
# parameters of the NICs; AFTER is run in the machine when the run is over, before that the function `afterwards` out here.
# Leaves $work/run, $work/verdict, what the machine wrote in $work/out, the exit code in $status. With KEEP, all of that there.
#
# Everything here has its time by the host's clock, and where others have the host's cores, links go silent, answers come too late,
# and each function may seem slow. So what fails while the host starved the emulator, or because that aborted, is tried three times, and
# skipped then.
set -u
for program in ssh ssh-keygen /usr/sbin/sshd jq; do
    command -v $program >/dev/null || { echo "there is no $program (openssh-client, openssh-server, jq)"; exit 77; }
done
if [ "${1:-}" != inside ]; then # while there is a network
    made=$(tests/lab/make_lab.sh "$BUILD") || { tail -n 1 <<<"$made"; exit 77; }
fi
. "$(dirname "$0")/../guest/tap_lib.sh"
. "$(dirname "$0")/score_lib.sh"
ended() {
    local status=$? why attempt=${ATTEMPT:-1}
    [ -z "$guest" ] || pkill -P $guest # a script, and at the end of what waits for it
    kill $guest "${ours[@]}" 2>/dev/null
    wait
    why=$(grep -h -o -e 'the host starved the emulator.*' -e 'qemu said: .*Assertion.*failed' "$work/said" 2>/dev/null)
    [ -z "${KEEP:-}" ] || cp -r "$work/out" "$work/said" "$KEEP"
    rm -rf "$work"
    [ $status != 0 ] && [ $status != 77 ] && [ -n "$why" ] || exit $status
    [ "$attempt" -lt 3 ] || { echo "$why; three times"; exit 77; }
    echo "$why; once more"
    ip link del tap0
    ATTEMPT=$((attempt + 1)) exec bash "$0" inside
}
trap ended EXIT
: "${SERVER:=kind: labserver, options: [--fault, 'slow,250ms,1500ms', --fault-log, /home/faults]}"
: "${THREADS:=1}" "${RATE:=20}" "${DURATION:=6s}" "${SLICE:=p90-100}" "${MIX:=get: 9, set: 1}" "${CAPTURE:=backend: intel_pt, detail: light, bytes: 250MiB}" "${AT_SERVER:=true}"
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
insmod phcpair.ko ${PAIR:-} || exit 1
for name in client server; do
    unshare -n sleep 100000 &
    echo \$! >/run/\$name.pid
    until [ "\$(readlink /proc/\$(cat /run/\$name.pid)/ns/net)" != "\$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
    card=phc\$([ \$name = client ] && echo 0 || echo 1)
    ip link set \$card netns \$(cat /run/\$name.pid)
    nsenter --net=/proc/\$(cat /run/\$name.pid)/ns/net bash -c "ip link set lo up; ip addr add 10.77.0.\$((\${card#phc} + 1))/24 dev \$card; ip link set \$card up"
    # As a card's own interrupt would, on the core of client or server: the pair delivers on the core that sent.
    nsenter --net=/proc/\$(cat /run/\$name.pid)/ns/net unshare -m bash -c "mount -t sysfs none /sys; echo \$([ \$name = client ] && echo 2 || echo 1) >/sys/class/net/\$card/queues/rx-0/rps_cpus" || exit 1
    /usr/sbin/sshd -D -e -f sshd_\$name 2>/run/sshd-\$name.log &
done
nsenter --net=/proc/\$(cat /run/server.pid)/ns/net bash at_server || exit 1
for name in client server; do
    tries=600
    until grep -q 'Server listening' /run/sshd-\$name.log; do
        tries=\$((tries - 1)); [ \$tries -gt 0 ] || { cat /run/sshd-*.log; exit 1; }
        sleep 0.1
    done
done
$guest_wait
cp /home/faults /out/faults 2>/dev/null
${AFTER:-}
left=\$(ls -A /home/files)
[ -z "\$left" ] || { echo "left behind: \$left; ten seconds later: \$(sleep 10; ls -R /home/files)"; exit 1; }
dmesg >/out/dmesg
grep -E 'WARNING:|BUG:|Oops' /out/dmesg && exit 1
exit 0
INSIDE
sed "s|SSH_CONFIG|$work/ssh_config|; s|SERVER|$SERVER|; s|THREADS|$THREADS|; s|RATE|$RATE|; s|DURATION|$DURATION|; s|SLICE|$SLICE|; s|MIX|$MIX|; s|CAPTURE|$CAPTURE|" tests/lab/headline.yaml >"$work/headline.yaml"
echo "$AT_SERVER" >"$work/at_server"
# As they are installed: what is sent over an emulated ssh is a third less without what debuggers want to know.
mkdir "$work/bin"
for file in taillight labserver libtaillight-shim.so; do strip -g -o "$work/bin/$file" "$BUILD/$file"; done
guest_runner=tests/lab/lab.sh guest_start -c 4 -t 600 -p sshd "${BRINGING[@]}" -f "$work/at_server" -o "$work/out" -f "$work/inside" -f "$work/sshd_client" \
    -f "$work/sshd_server" -f "$work/host_key" -f "$work/user_key.pub" 'bash inside'
"$work/bin/taillight" run "$work/headline.yaml" --out "$work/run" >"$work/verdict" 2>&1
status=$?
[ $status = 0 ] || cat "$work/verdict"
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$work/verdict" "$KEEP"
! declare -F afterwards >/dev/null || afterwards
guest_end
[ $status = 0 ] || [ $status = 4 ] || fail "the run: exit $status: $(cat "$work/verdict")"
summary=$work/run/summary.json
expect() { # FILTER
    jq -e "$1" "$summary" >/dev/null || fail "not $1: $(jq -c '[.requests, .joined, .order_violations, .trace]' "$summary"); $(cat "$work/verdict")"
}
# One of the slow messages' causes is of that class and has that in its name. Leaves it in $found.
is_found() { # CLASS NAME
    found=$(jq --arg class "$1" --arg name "$2" '[.causes[] | select(.class == $class and (.cause | contains($name)))] | first' "$summary")
    [ "$found" != null ] || fail "no $1 $2: $(jq -c '[.causes[] | [.cause, .class, .messages]]' "$summary"); $(cat "$work/verdict")"
    echo "exit $status; $(jq -c '[.requests, .joined]' "$summary"); $(jq -c . <<<"$found"); first: $(jq -c '.causes[0].cause' "$summary")"
}
# And it is the first, unless the host took the emulated cores away for as long, which the run then says (exit 4).
is_first() {
    is_found "$@"
    [ $status = 4 ] || expect ".causes[0] | .class == \"$1\" and (.cause | contains(\"$2\"))"
}
