#!/usr/bin/env bash
# --dry-run does nothing, and what it prints is what the run then does.
# Runs beside others: words and commands.
. tests/experiments/run_lib.sh
need_capture
PATH=$PATH:/usr/sbin
need_program nginx nginx-light
experiment "$work/x.yaml" netns 1k 300ms <<END
servers:
  cache: {kind: memcached, threads: 1, options: [-o, "hashpower=17,no_lru_crawler"]}
neighbours:
  web: {kind: nginx, load: {rate: 200, connections: 2}}
  noisy: {command: [sleep, "0.1 "]}
tuning:
  server:
    - sysctl: {net.ipv4.tcp_autocorking: 0}
capsule: {hops: [to0@client, to1@switch]}
END
sed -i '/^hosts:/a \  switch: {kind: bridge}' "$work/x.yaml"
"$taillight" run --dry-run "$work/x.yaml" --out "$work/run" >"$work/dry" 2>"$work/cmd.err" || fail "--dry-run"
[ ! -e "$work/run" ] || fail "it made the run folder"
pgrep -fa -- "$work/run" && fail "it started something"
grep -q -- "--cores 0 --helper-cores 1 .*--client-cores 1" "$work/dry" ||
    fail "cores mixed up: $(grep ' capture ' "$work/dry")"
grep -q "^server: sleep '0.1 '$" "$work/dry" || fail "not quoted: $(grep sleep "$work/dry")"
"$taillight" run "$work/x.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status"

said_is_done "$work/dry" "$work/run/commands.log"
[ "$(wc -l <"$work/said")" -ge 20 ] || fail "only $(wc -l <"$work/said") lines"
"$taillight" run --dry-run experiments/memcached-case-study/all.yaml >"$work/dry" 2>"$work/cmd.err" || fail "a study"
[ "$(grep -c '^# case-study' "$work/dry")" = 6 ] || fail "a study has $(grep '^#' "$work/dry")"
echo "dry run: $(wc -l <"$work/said") commands and settings are what is done"
