#!/usr/bin/env bash
# A server that is reached through a jump host only, as a user without privileges: the doctor says
# what he lacks there; a run names it, and the host, and does the rest, with priorities as asked for;
# it claims no verdict that it has no evidence for, and leaves nothing.
# Runs beside others: rights and files, no times.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_program memcached memcached
ssh_hosts jump server
near ip link set to-server down
ip link add inner netns "ssh$$-jump" type veth peer name outer netns "ssh$$-server"
far jump ip address add 10.249.0.1/24 dev inner
far server ip address add 10.249.0.2/24 dev outer
far jump ip link set inner up
far server ip link set outer up
echo "10.249.0.2 $(cut -d' ' -f1,2 "$work/server-key.pub")" >>"$work/known_hosts"
printf 'Host server\n HostName 10.249.0.2\n User guest\n ProxyJump jump\n' | cat - "$ssh_config" >"$work/config"
ssh_config="$work/config"
# Only that sshd knows the user; his home cannot be written to.
mkdir "$work/home" "$work/his"
chown 4242:4242 "$work/his"
{
    cat /etc/passwd
    echo "guest:x:4242:4242::$work/home:/bin/sh"
} >"$work/passwd"
inside server mount --bind "$work/passwd" /etc/passwd || skip "no file can be mounted here"
near ssh -F "$ssh_config" -o BatchMode=yes server true 2>"$work/ssh.err" || fail "ssh does not come through"

near "$taillight" doctor server --json --ssh-config "$ssh_config" --directory "$work/his" \
    >"$work/doctor.json" 2>"$work/doctor.err" || fail "doctor: exit $?"
item=$(jq -r '.items[] | select(.name | test("^BPF")) | "\(.state): \(.missing)"' "$work/doctor.json")
[[ "$item" == no:*CAP_BPF* ]] || fail "doctor says of BPF: $item"

cat >"$work/user.yaml" <<YAML
name: user
hosts:
  client: {kind: ssh, address: jump, cores: [0], nic: inner, ssh_config: $ssh_config, directory: $work/jump-files}
  server: {kind: ssh, address: server, cores: [0], ssh_config: $ssh_config, directory: $work/his}
servers: {cache: {kind: memcached, threads: 1}}
tuning: {server: [{sysctl: {net.ipv4.tcp_autocorking: 0}}]}
neighbours:
  humble: {command: [sh, -c, "nice >$work/his/humble"], nice: 5}
  proud: {command: [sh, -c, "nice >$work/his/proud"], nice: -15}
  beside: {host: client, command: [sh, -c, "nice >$work/jump-files/niceness"], nice: -15}
workload: {keys: {count: 100}, values: {size: {fixed: 200}}}
load: {rate: 1k, duration: 500ms, connections: 4, depth: 64, timeout: 1s, sleep: true}
YAML
run="$work/run"
near "$taillight" run "$work/user.yaml" --out "$run" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 4 ] || fail "exit $status instead of 4"
warnings=$(jq -r '.warnings[]' "$run/experiment.json")
for expected in 'capture on host server: no kernel events: .*CAP_BPF' \
    'tcp_autocorking is not set on host server: Permission denied' 'neighbour `proud`.*Permission denied'; do
    grep -Eq "$expected" <<<"$warnings" || fail "no warning like \"$expected\": $warnings"
done
[ "$(jq .shim.calls "$run/server/capture.json")" -gt 200 ] || fail "the shim saw $(jq .shim.calls "$run/server/capture.json") calls"
[ "$(jq .answered "$run/summary.json")" -gt 250 ] || fail "$(jq .answered "$run/summary.json") requests were answered"
jq -e '.verdict_available == false and (.verdict | test("no kernel events"))' "$run/summary.json" >/dev/null ||
    fail "the verdict: $(jq .verdict "$run/summary.json")"
[ "$(cat "$work/his/humble") $(cat "$work/jump-files/niceness")" = '5 -15' ] ||
    fail "priorities: $(cat "$work/his/humble" "$work/jump-files/niceness")"
[ ! -e "$work/his/proud" ] || fail "a priority was had without the right to it"
rm "$work/his/humble" "$work/jump-files/niceness"
ssh_nothing_left jump 10
rmdir "$work/his" "$work/server-files" && mkdir "$work/server-files" || fail "left: $(ls -A "$work/his")"
ssh_nothing_left server 10
[ -z "$(find "$work/home" -mindepth 1)" ] || fail "left in his home: $(ls -A "$work/home")"
echo "$(jq .answered "$run/summary.json") requests through a jump host to a server of an unprivileged user"
