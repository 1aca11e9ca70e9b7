#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# An experiment whose server is behind ssh on a truly foreign machine: the guest, with another
# kernel, boot and clocks, and this machine's own sshd in it. The logs come back, the two clocks are
# related within a bound, and nothing is left over there.
set -u
if [ "${1:-}" != inside ]; then
    [ "$(id -u)" = 0 ] || { echo "needs root for a network namespace of its own"; exit 77; }
    [ -c /dev/net/tun ] || { echo "there is no /dev/net/tun for the guest's NIC"; exit 77; }
    for program in ssh ssh-keygen /usr/sbin/sshd; do
        command -v $program >/dev/null || { echo "there is no $program (openssh-client, openssh-server)"; exit 77; }
    done
    # What the guest is made of is fetched before the network is gone.
    kernel=$(tests/guest/fetch_kernel.sh "$BUILD") || { tail -n 1 <<<"$kernel"; exit 77; }
    exec unshare -n "$0" inside
fi
work=$(mktemp -d /tmp/taillight-ssh-guest-XXXXXX)
guest=
trap '[ -z "$guest" ] || kill $guest 2>/dev/null; wait; rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*"
    cat "$work/said"
    exit 1
}
: >"$work/said"
ip link set lo up
ip tuntap add tap0 mode tap || { echo "no tap device can be made here"; exit 77; }
ip addr add 10.79.0.1/24 dev tap0
ip link set tap0 up
ssh-keygen -q -t ed25519 -N '' -f "$work/user_key"
ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
cat >"$work/sshd_config" <<'EOF'
ListenAddress 10.79.0.2
HostKey /guest/host_key
PidFile none
AuthorizedKeysFile /guest/user_key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
SetEnv PATH=/usr/sbin:/usr/bin:/usr/lib/busybox
EOF
cat >"$work/ssh_config" <<EOF
Host guest
  HostName 10.79.0.2
  User root
  IdentityFile $work/user_key
  IdentitiesOnly yes
  UserKnownHostsFile $work/known_hosts
  StrictHostKeyChecking yes
EOF
echo "10.79.0.2 $(cut -d' ' -f1,2 "$work/host_key.pub")" >"$work/known_hosts"
cat >"$work/inside" <<'INSIDE'
set -u
modprobe virtio_net
tries=50
until ip link show eth0 >/dev/null 2>&1; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
    sleep 0.1
done
ip addr add 10.79.0.2/24 dev eth0
ip link set eth0 up
mkdir -p /run/sshd /home/files
chmod 600 host_key
ls /tmp /dev/shm >/run/before
uname -r >/out/release
/usr/sbin/sshd -D -e -f sshd_config 2>/run/sshd.log &
echo the guest is ready
nc -l -p 11212 >/dev/null # until someone comes
ls /tmp /dev/shm >/run/after
diff /run/before /run/after && [ -z "$(ls -A /home/files)" ] && ! pgrep taillight && ! pgrep memcached ||
    { echo 'something was left'; ls -R /home/files; exit 1; }
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
cat >"$work/far.yaml" <<EOF
name: ssh-guest
hosts:
  client: {kind: local, cores: [1]}
  server: {kind: ssh, address: guest, cores: [0], ssh_config: $work/ssh_config, directory: /home/files}
servers:
  cache: {host: server, kind: memcached, threads: 1, memory: 64MiB, shim: true}
workload:
  keys: {count: 200}
  values: {size: {fixed: 200}}
load: {rate: 100, duration: 4s, connections: 4, depth: 64, timeout: 10s, seed: 1}
EOF
tests/guest/run_guest.sh -t 240 -n tap0 -p sshd -o "$work/out" -f "$work/inside" -f "$work/sshd_config" \
    -f "$work/host_key" -f "$work/user_key.pub" 'bash inside' >"$work/said" 2>&1 &
guest=$!
until grep -q 'the guest is ready' "$work/said"; do
    kill -0 $guest 2>/dev/null || {
        wait $guest
        [ $? -ne 77 ] || { tail -n 1 "$work/said"; exit 77; }
        fail "the guest ended before it was ready"
    }
    sleep 0.2
done
"$BUILD/taillight" run "$work/far.yaml" --out "$work/run" --quiet >"$work/verdict" 2>&1
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "the run: exit $status: $(cat "$work/verdict")"
: 2>/dev/null >/dev/tcp/10.79.0.2/11212 || fail "the guest cannot be told to end"
wait $guest || fail "the guest: exit $?"
guest=
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$KEEP"
expect() { # FILE FILTER
    jq -e "$2" "$work/run/$1" >/dev/null ||
        fail "$1: not $2: $(jq -c '[.requests, .joined, .unmatched, .order_violations, .hosts]' "$work/run/$1")"
}
expect experiment.json ".hosts.server.kernel | test(\"$(cat "$work/out/release")\")"
expect experiment.json ".hosts.server.boot_id != \"$(cat /proc/sys/kernel/random/boot_id)\""
expect summary.json '.requests > 300 and .joined >= 0.95 * .requests'
expect summary.json '.hosts.exchanges >= .joined and .hosts.negative_trips == 0 and .hosts.bound_p50_us > 0'
expect summary.json '.order_violations <= 0.01 * .requests and .worst_stage_sum_error_ns == 0'
expect summary.json '[.stages[].machine] | unique == ["", "client", "server"]'
expect summary.json '.verdict | length > 0'
echo "$(jq -c '[.joined, .requests, .hosts]' "$work/run/summary.json") with Linux $(cat "$work/out/release"): exit $status"
