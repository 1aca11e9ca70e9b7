#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A run is killed whose load and whose server are on other machines: what both had measured waits
# there, the next run names it, and `doctor HOST --restore --into RUN` brings it back, after which
# the run can be analyzed, and nothing is left there.
# Runs beside others: words, files and counts.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts server loader
. "$(dirname "$0")/ssh_ends_lib.sh"
left_on() { inside "$1" find "$work/$1-files" -mindepth 1 -maxdepth 1 -name 'taillight-left-*'; }
doctor() { # HOST OPTIONS...
    near "$taillight" doctor "$1" --ssh-config "$ssh_config" --directory "$work/$1-files" --quiet "${@:2}" \
        >"$work/doctor.out" 2>"$work/doctor.err" || fail "doctor $*: exit $?, $(tail -n 1 "$work/doctor.err")"
}

ssh_start_run killed 30s "{kind: ssh, address: loader, cores: [1], ssh_config: $ssh_config, directory: $work/loader-files}"
sleep 3 # some of it is recorded
kill -9 $pid
ssh_ended killed 137 '' "$(date +%s)"
killed=$run
ssh_nothing_left loader 20
for host in server loader; do
    [ "$(left_on $host | wc -l)" -eq 1 ] || fail "$host has kept $(left_on $host)"
done
[ -z "$(find "$killed" -name '*.tlog*')" ] || fail "something came by itself"

doctor loader
grep -q "taillight-left-.*-client is what a run that died had measured there; --restore" "$work/doctor.err" ||
    fail "doctor does not name it: $(cat "$work/doctor.err")"
ssh_start_run next 1s
grep -q 'of earlier runs measured on host server is still there, in .*-server: .taillight doctor server --restore' "$work/next.err" ||
    fail "the next run does not name it: $(cat "$work/next.err")"
wait $pid

# Another run's folder gets nothing.
doctor server --restore --into "$run"
[ "$(left_on server | wc -l)" -eq 1 ] && grep -q "that run's folder or one that is of no run" "$work/doctor.err" ||
    fail "into another run: $(cat "$work/doctor.err")"
doctor server --restore --into "$killed"
doctor loader --restore --into "$killed"
for host in server loader; do [ -z "$(left_on $host)" ] || fail "$host still has $(left_on $host)"; done
[ -z "$(find "$killed" -name 'taillight-left-*')" ] || fail "not where it belongs: $(find "$killed" -name 'taillight-left-*')"
near "$taillight" analyze "$killed" >"$work/analyzed" 2>"$work/analyze.err"
status=$?
[ $status -eq 0 ] || [ $status -eq 4 ] || fail "it cannot be analyzed: exit $status, $(cat "$work/analyze.err")"
joined=$(jq .joined "$killed/summary.json")
[ "$joined" -ge 1000 ] || fail "only $joined requests were joined of $(jq -c "[.requests, .joined]" "$killed/summary.json")"
echo "a run that was killed: $joined requests joined"
