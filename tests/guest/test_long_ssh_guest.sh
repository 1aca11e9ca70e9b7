#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# An experiment whose server is behind ssh on a truly foreign machine: the guest, with another
# kernel, boot and clocks, and this machine's own sshd in it. The logs come back, the two clocks are
# related within a bound, and nothing is left over there.
set -u
for program in ssh ssh-keygen /usr/sbin/sshd; do
    command -v $program >/dev/null || { echo "there is no $program (openssh-client, openssh-server)"; exit 77; }
done
. "$(dirname "$0")/tap_lib.sh"
guest_ssh guest 10.78.0.2
cat >"$work/inside" <<INSIDE
$guest_begin
mkdir -p /run/sshd /home/files
chmod 600 host_key
ls /tmp /dev/shm >/run/before
/usr/sbin/sshd -D -e -f sshd_guest 2>/run/sshd.log &
tries=300
until grep -q 'Server listening' /run/sshd.log; do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || { cat /run/sshd.log; exit 1; }
    sleep 0.1
done
$guest_wait
ls /tmp /dev/shm >/run/after
diff /run/before /run/after && [ -z "\$(ls -A /home/files)" ] &&
    ! grep -lxE 'taillight|memcached' /proc/[0-9]*/comm ||
    { echo 'something was left'; ls -R /home/files; exit 1; }
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
cat >"$work/far.yaml" <<EOF
name: ssh-guest
hosts:
  client: {kind: local, cores: [1]}
  server: {kind: ssh, address: guest, cores: [0], ssh_config: $work/ssh_config, directory: /home/files, silence: 60s}
servers:
  cache: {host: server, kind: memcached, threads: 1, memory: 64MiB, shim: true}
workload:
  keys: {count: 200}
  values: {size: {fixed: 200}}
load: {rate: 100, duration: 4s, connections: 4, depth: 64, timeout: 10s, seed: 1}
EOF
guest_start -t 240 -p sshd -o "$work/out" -f "$work/inside" -f "$work/sshd_guest" -f "$work/host_key" \
    -f "$work/user_key.pub" 'bash inside'
"$BUILD/taillight" run "$work/far.yaml" --out "$work/run" --quiet >"$work/verdict" 2>&1
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "the run: exit $status: $(cat "$work/verdict")"
guest_end
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$KEEP"
expect() { # FILE FILTER
    jq -e "$2" "$work/run/$1" >/dev/null ||
        fail "$1: not $2: $(jq -c '[.requests, .joined, .unmatched, .order_violations, .hosts]' "$work/run/$1")"
}
expect experiment.json ".hosts.server.kernel | test(\"$(cat "$work/out/release")\")"
expect experiment.json ".hosts.server.boot_id != \"$(cat /proc/sys/kernel/random/boot_id)\""
[ -s "$work/run/client/events.tlog" ] || fail "the load's own cores were not recorded"
expect client/capture.json '.client_cores == "1" and (.events.records > 0) and .ports == []'
expect summary.json '.requests > 300 and .joined >= 0.95 * .requests'
expect summary.json '.hosts.exchanges >= .joined and .hosts.negative_trips == 0 and .hosts.bound_p50_us > 0'
expect summary.json '.order_violations <= 0.01 * .requests and .worst_stage_sum_error_ns == 0'
expect summary.json '[.stages[].machine] | unique == ["", "client", "server"]'
expect summary.json '.verdict | length > 0'
echo "$(jq -c '[.joined, .requests, .hosts]' "$work/run/summary.json") with Linux $(cat "$work/out/release"): exit $status"
