#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A server whose firewall tracks connections, and whose table of them is full of those that have ended:
# what would open the next one is dropped, and the run says so. In a guest, because the size of the
# table is the whole machine's.
. tests/guest/guest_lib.sh

guest_experiment conntrack 100 <<'YAML'
capture: {backend: events}
YAML
sed -i -e 's/^  cache: .*/  cache:/' -e 's/duration: 2s/duration: 5s, session: 20/' "$work/conntrack.yaml"
sed -i "/^  cache:/r /dev/stdin" "$work/conntrack.yaml" <<'YAML'
    host: server
    kind: command
    port: 11211
    shim: true
    command: [bash, server.sh, '{address}', '{port}']
YAML
cat >"$work/server.sh" <<'INSIDE'
nft 'add table ip guard; add chain ip guard in { type filter hook input priority 0; }
     add rule ip guard in ct state new counter'
exec memcached -u root -l "$1" -p "$2" -U 0 -t 1
INSIDE
cat >"$work/inside.sh" <<'INSIDE'
modprobe nft_ct && echo 12 >/proc/sys/net/netfilter/nf_conntrack_max || exit 1
./taillight run conntrack.yaml --out /tmp/run --quiet >/dev/null 2>/out/run.err
echo $? >/out/verdict
cp /tmp/run/summary.json /tmp/run/server/capture.json /out/
INSIDE
guest_run -t 300 -p nft -f "$work/conntrack.yaml" -f "$work/server.sh" -f "$work/inside.sh" '. ./inside.sh'
grep -qE '^[04]$' "$work/out/verdict" || fail "the run ended with $(cat "$work/out/verdict" "$work/out/run.err")"
expect capture.json '.firewall.untracked > 0' .firewall
why='table of connections \\(conntrack\\) had no room [0-9]+ times?'
expect summary.json "(.lede | test(\"$why\")) and (.remedy | test(\"larger table of connections\"))" '[.lede, .remedy, .verdict]'
jq -r .lede "$work/out/summary.json"
