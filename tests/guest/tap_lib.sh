# SPDX-License-Identifier: MIT
#
# For tests that talk to a guest over a NIC: a network namespace of the test's own with a tap device,
# 10.78.0.1 here and 10.78.0.2 in the guest. Sourced with the test's arguments; what comes after runs
# in the namespace, with $work to write to. The guest's command begins with $guest_begin, says it is
# ready, and goes on after $guest_wait when guest_end comes.
if [ "${1:-}" != inside ]; then
    [ "$(id -u)" = 0 ] || { echo "needs root for a network namespace of its own"; exit 77; }
    [ -c /dev/net/tun ] || { echo "there is no /dev/net/tun for the guest's NIC"; exit 77; }
    # What the guest is made of is fetched before the network is gone.
    kernel=$(tests/guest/fetch_kernel.sh "$BUILD") || { tail -n 1 <<<"$kernel"; exit 77; }
    exec unshare -n "$0" inside
fi
. tests/guest/guest_lib.sh
guest=
ours=() # other processes
trap 'kill $guest "${ours[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
ip link set lo up
ip tuntap add tap0 mode tap || { echo "no tap device can be made here"; exit 77; }
ip addr add 10.78.0.1/24 dev tap0
ip link set tap0 up

guest_begin='
set -u
modprobe virtio_net
tries=50
until ip link show eth0 >/dev/null 2>&1; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
    sleep 0.1
done
ip addr add 10.78.0.2/24 dev eth0
ip link set eth0 up
uname -r >/out/release'
guest_wait='
read -r up idle </proc/uptime
echo "the guest is ready, up for $up s"
nc -l -p 11212 >/dev/null
read -r up idle </proc/uptime
echo "the guest is told to end, up for $up s"'

# For a guest that is reached by ssh: guest_ssh NAME ADDRESS[:PORT] SSHD-LINE... writes $work/sshd_NAME for this machine's own
# sshd in it, in which these lines come first and so count, and adds the host NAME to $work/ssh_config. Keys of the test's own
# are made the first time.
guest_ssh() {
    local address=${2%:*} port=22
    [ "$address" = "$2" ] || port=${2##*:}
    if [ ! -e "$work/user_key" ]; then
        ssh-keygen -q -t ed25519 -N '' -f "$work/user_key"
        ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
    fi
    printf '%s\n' "${@:3}" "ListenAddress $address:$port" 'HostKey /guest/host_key' 'PidFile none' \
        'AuthorizedKeysFile /guest/user_key.pub' 'PasswordAuthentication no' 'KbdInteractiveAuthentication no' \
        'PermitRootLogin prohibit-password' 'StrictModes no' 'SetEnv PATH=/usr/sbin:/usr/bin:/usr/lib/busybox' >"$work/sshd_$1"
    printf '%s\n' "Host $1" "HostName $address" "Port $port" 'User root' "IdentityFile $work/user_key" 'IdentitiesOnly yes' \
        "UserKnownHostsFile $work/known_hosts" 'StrictHostKeyChecking yes' >>"$work/ssh_config"
    [ $port = 22 ] || address="[$address]:$port"
    echo "$address $(cut -d' ' -f1,2 "$work/host_key.pub")" >>"$work/known_hosts"
}

# For inside: memcached under capture until the load is over. guest_serve CAPTURE-OPTIONS SERVER-PREFIX
# DURING: the words before memcached, and a command beside it, may be empty.
guest_serve() {
    cat <<INSIDE
mkdir -p /out/server /tmp/shim
mkfifo /tmp/end
./taillight capture --out /out/server --port 11211 --shim /tmp/shim --backend events $1 </tmp/end >/tmp/capture 2>&1 &
capture=\$!
exec 8>/tmp/end
tries=300
until grep -q '"ready": *true' /tmp/capture; do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || { cat /tmp/capture; exit 1; }
    sleep 0.1
done
TAILLIGHT_SHIM_DIR=/tmp/shim LD_PRELOAD=./libtaillight-shim.so \
    $2 memcached -u root -l 10.78.0.2 -p 11211 -t 1 8>&- &
server=\$!
$3
$guest_wait
exec 8>&-
(
    sleep 20 # a second or two is what it takes
    echo "the capture goes on; what it printed, its threads, who holds its standard input:"
    cat /tmp/capture
    for task in /proc/\$capture/task/*; do head -n 3 \$task/status; cat \$task/stack; done
    ls -l /proc/[0-9]*/fd | grep -e '^/proc' -e tmp/end | grep -B 1 tmp/end
) &
wait \$capture || { cat /tmp/capture; exit 1; }
read -r up idle </proc/uptime
echo "the capture has ended, up for \$up s"
kill \$server
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
}

guest_start() { # as run_guest.sh, or $guest_runner, which takes its options
    : >"$work/said"
    "${guest_runner:-tests/guest/run_guest.sh}" -n tap0 "$@" >"$work/said" 2>&1 &
    guest=$!
    until grep -q 'the guest is ready' "$work/said"; do
        kill -0 $guest 2>/dev/null || {
            wait $guest
            [ $? -ne 77 ] || { tail -n 1 "$work/said"; exit 77; }
            fail "the guest ended before it was ready"
        }
        sleep 0.2
    done
}

# An emulated card may lose an interrupt, and is deaf then; a core may lose its timer, and what waits
# until all cores have passed through the kernel (synchronize_rcu_tasks, when the capture's fentry
# program is detached) waits for ever. The test is made once more.
guest_end() {
    local status
    : 2>/dev/null >/dev/tcp/10.78.0.2/11212 || fail "the guest cannot be told to end"
    wait $guest
    status=$?
    guest=
    if [ $status = 124 ] && [ -z "${AGAIN:-}" ] &&
        { ! grep -q 'the guest is told to end' "$work/said" || grep -q synchronize_rcu "$work/said"; }; then
        echo "the guest did not hear that it is to end, or its kernel waits for a core; once more"
        ip link del tap0
        rm -rf "$work"
        AGAIN=yes exec bash "$0" inside
    fi
    [ $status = 0 ] || fail "the guest: exit $status"
}

# Loads the memcached in the guest from out here, with a clock log, and puts both sides' logs together
# in $work/run. COMMAND... is run just before the load, which says in $work/load.out when it begins. It
# takes 4 s, or $load_seconds; tap_load_ends ends it before.
tap_load_ends() { pkill -INT -f -- "load --workload $work/few.yaml .*--samples"; }
tap_load() {
    local load tries clock status
    cat >"$work/few.yaml" <<'YAML'
keys: {count: 200}
values: {size: {fixed: 200}}
YAML
    load=("$BUILD/taillight" load --workload "$work/few.yaml" --server 10.78.0.2:11211 --connections 4 --timeout 10s --seed 1 --quiet)
    tries=10
    until "${load[@]}" --prepare --json >/dev/null 2>"$work/prepare"; do
        tries=$((tries - 1)); [ $tries -gt 0 ] || fail "no dataset: $(cat "$work/prepare")"
        sleep 0.2
    done
    mkdir "$work/client"
    mkfifo "$work/end"
    "$BUILD/taillight" capture --backend none --no-events --out "$work/client" <"$work/end" >"$work/clock" 2>&1 &
    clock=$!
    ours+=($clock)
    exec 8>"$work/end"
    tries=100
    until grep -q '"ready": *true' "$work/clock"; do
        tries=$((tries - 1)); [ $tries -gt 0 ] || fail "no clock log: $(cat "$work/clock")"
        sleep 0.1
    done
    "$@"
    "${load[@]}" --rate 100 --duration "${load_seconds:-4}s" --samples "$work/client" --announce --json >"$work/load.out" 2>"$work/load.err" 8>&-
    status=$?
    sed 1d "$work/load.out" >"$work/client/load.json"
    [ $status = 0 ] || [ $status = 4 ] || fail "the load: exit $status: $(cat "$work/load.err")"
    exec 8>&-
    wait $clock || fail "the clock log: $(cat "$work/clock")"
    guest_end
    mv "$work/client" "$work/run/"
    [ -z "${KEEP:-}" ] || cp -r "$work/run" "$KEEP"
}
