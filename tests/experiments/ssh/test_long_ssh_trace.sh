#!/usr/bin/env bash
# A processor trace of another machine: what ran there comes with it, the very files, since this machine
# may have other builds of the same programs. There the Intel PT is a folder of the test's, and perf is
# the real one, which is given a software event in its place.
# The memcached is of a path that only these two hosts have: others that run here are in the trace, too.
# Runs beside others: nothing is timed.
. tests/experiments/run_lib.sh
. tests/experiments/ssh/ssh_lib.sh
need_program memcached memcached
need_program jq jq
need_program perf linux-perf
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
perf record -q -e cpu-clock -a -o "$work/made" -- true >/dev/null 2>"$work/perf.err" ||
    skip "perf record does not work here (no perf, or not permitted)"
mkdir "$work/bin" "$work/here"
cat >"$work/bin/perf" <<END
#!/bin/bash
# As perf, but for the event, and buffers that only a trace has.
words=()
for word in "\$@"; do
    case \$word in
        intel_pt*) words+=(cpu-clock) ;;
        --mmap-pages=* | --kcore) ;;
        *) words+=("\$word") ;;
    esac
done
exec $(command -v perf) "\${words[@]}"
END
chmod 755 "$work/bin/perf"
# Another build than the near host's, as a memcached of the same path there.
memcached=/usr/local/bin/memcached
cp "$(command -v memcached)" "$work/here/memcached"
cp "$work/here/memcached" "$work/bin/memcached"
echo "another build" >>"$work/bin/memcached"
ssh_hosts far
inside far mount --bind "$work/bin" /usr/local/bin || skip "nothing can be mounted here"
inside far mount -t tmpfs none /sys/bus/event_source/devices || skip "/sys cannot be mounted over"
inside far sh -c 'cd /sys/bus/event_source/devices && mkdir -p intel_pt/caps && echo 8 >intel_pt/type'

claim_port
cat >"$work/far.yaml" <<EOF
name: far
hosts:
  client: {kind: local, cores: [1]}
  server: {kind: ssh, address: far, cores: [0], directory: $work/far-files, ssh_config: $ssh_config}
servers: {cache: {kind: memcached, host: server, port: $port}}
workload: {keys: {count: 1k}, values: {size: {fixed: 200}}}
load: {from: client, rate: 2000, duration: 1s, connections: 8, timeout: 1s, sleep: true}
capture: {backend: intel_pt, calls: none}
EOF
run=$work/run
near sh -c 'mount --bind "$0" /usr/local/bin && exec "$@"' "$work/here" "$taillight" run "$work/far.yaml" --out "$run" >"$work/out" 2>"$work/cmd.err"
status=$?
[ $status -eq 4 ] || fail "exit $status instead of 4, for nothing was traced"
tr -s ' \n' ' ' <"$work/out" | grep -q 'functions are N/A: ' || fail "the terminal does not say why functions are unknown"
[ -e "$run/server/perf.data" ] || fail "the recording is not here"
cmp -s "$run/server/symfs$memcached" "$work/bin/memcached" ||
    fail "the program that ran is not here: $(find "$run/server/symfs" -type f | head -20)"
[ -s "$run/server/symfs/[vdso]" ] || fail "the vdso is not here"
jq -e '.intel_pt.code | .files > 2 and .bytes > 100000' "$run/server/capture.json" >/dev/null ||
    fail "capture.json does not count the code: $(jq -c .intel_pt "$run/server/capture.json")"
grep -q 'fetch .*: the recording' "$run/commands.log" || fail "the recording is not fetched by itself"
ssh_nothing_left far 20
jq -c .intel_pt.code "$run/server/capture.json"
