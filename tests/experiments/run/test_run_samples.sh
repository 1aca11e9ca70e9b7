#!/usr/bin/env bash
# The samples backend: a program whose hot function is known is seen in it; a run with a server that
# spins in a known function says so beside its causes. What cannot be had is refused in words.
. tests/experiments/run_lib.sh
need_program jq jq
build=$(dirname "$taillight")
out=$work/capture

refused() { # EXIT PATTERN OPTIONS...
    local code=$1 pattern=$2
    shift 2
    "$taillight" capture --out "$out" --no-events "$@" </dev/null >/dev/null 2>"$work/cmd.err"
    [ $? -eq "$code" ] || fail "exit $? instead of $code: $*"
    grep -q -- "$pattern" "$work/cmd.err" || fail "does not say \"$pattern\": $*"
}
refused 2 '--sample-rate is for --backend samples' --sample-rate 100
refused 2 'at most 100000 a second' --backend samples --sample-rate 100001
refused 1 'is it installed?' --backend samples --perf /nowhere/perf
[ ! -e "$out/capture.json" ] || fail "a capture that failed has a capture.json"

state=$("$taillight" doctor --json | jq -r '.items[] | select(.name == "samples backend") | .state')
[ "$state" = yes ] || skip "the cores cannot be sampled here"
perf record -q -e cpu-clock -o /dev/null -- true 2>/dev/null || skip "perf record does not work here"

# The truth: all of its time is in one function.
cat >"$work/hot.c" <<'EOF'
static __attribute__((noinline)) void hot_function(volatile unsigned *count)
{
    for (unsigned i = 0; i < 1000000; i++)
        ++*count;
}
int main(void)
{
    volatile unsigned count = 0;
    for (;;)
        hot_function(&count);
}
EOF
${CC:-gcc} -O1 -fno-omit-frame-pointer -o "$work/hot" "$work/hot.c" || fail "no compiler"
core=$(($(nproc) - 1))
taskset -c "$core" "$work/hot" &
hot=$!
: >"$work/ready"
{ await grep -q ready "$work/ready"; sleep 0.3; } | "$taillight" capture --out "$out" --backend samples --no-events --cores "$core" --quiet \
    >"$work/ready" 2>"$work/cmd.err"
status=$?
[ $status -eq 0 ] || fail "exit $status"
# Another one is killed: what perf wrote until then belongs to what is left of it.
: >"$work/killed.ready"
exec 7> >("$taillight" capture --out "$work/killed" --backend samples --no-events --segment 300ms --cores "$core" --quiet >"$work/killed.ready")
killed=$!
await grep -q '"segment":2' "$work/killed.ready" || fail "no segment is written"
# What it writes first are the maps of all processes.
maps=$(stat -c %s "$work/killed/perf.data")
written() { [ "$(stat -c %s "$work/killed/perf.data")" -ge $((maps + 50000)) ]; }
await written || fail "perf has written nothing yet"
kill -9 $killed
exec 7>&-
kill "$hot"
jq -e '.samples.perf_data == "perf.data" and .segments.ended == false' "$work/killed/capture.json" >/dev/null ||
    fail "the killed one's capture.json: $(cat "$work/killed/capture.json")"
[ -s "$work/killed/kallsyms" ] || fail "the killed one has no names of the kernel's functions"
"$taillight" analyze "$work/killed/perf.data" --quiet --top 1000 2>"$work/cmd.err" | grep -q hot_function ||
    fail "the killed one's samples cannot be read: $(cat "$work/cmd.err")"
jq -e '.samples == true and .events == false' "$work/ready" >/dev/null || fail "not ready to sample"
jq -e '.backend == "samples" and .samples.samples > 100 and .samples.lost == .dropped.samples and
       .samples.perf_data == "perf.data" and .samples.frequency == 3989' "$out/capture.json" >/dev/null ||
    fail "capture.json: $(cat "$out/capture.json")"
"$taillight" analyze "$out/perf.data" --quiet --folded "$work/folded" --top 3 >"$work/text" || fail "analyze"
grep -q 'and no processor trace' "$work/text" || fail "it does not say what the recording is"
"$taillight" analyze "$out/perf.data" --quiet --json --top 1000 >"$work/samples.json" || fail "analyze --json"
[ "$(jq .samples "$work/samples.json")" = "$(jq .samples.samples "$out/capture.json")" ] ||
    fail "capture.json and analyze count differently"
# Nearly all of the program's samples are in that function itself; the others are interrupts'.
read -r inside all <<<"$(awk '/^hot;/ { n = $NF; sub(/ [0-9]+$/, ""); all += n
    if (/;hot_function$/) inside += n } END { print inside + 0, all + 0 }' "$work/folded")"
[ "$inside" -gt 100 ] && [ $((inside * 10)) -ge $((all * 8)) ] ||
    fail "$inside of $all samples in hot_function"
"$taillight" analyze "$out/perf.data" --quiet --csv "$work/csv" >/dev/null 2>"$work/cmd.err"
[ $? -eq 2 ] || fail "--csv of samples is accepted"

# A run: the server spins for each request in serve_for, and now and then in slow_function.
need_capture
experiment "$work/run.yaml" netns 1k 1s <<EOF
servers:
  lab: {kind: labserver, options: ["--service", "fixed:30us", "--fault", "slow,3ms,30ms", "--fault-log", "$work/faults"]}
capture: {backend: samples}
diagnose: {slice: p85-100}
EOF
summary=$work/run/summary.json
# Where others had the server's core, the slowest requests waited for that instead.
samples_try() {
    conclusive_run "$work/run.yaml"
    jq -e '.backend == "samples" and .events.dropped == 0' "$work/run/server/capture.json" >/dev/null ||
        fail "not with events: $(cat "$work/run/server/capture.json")"
    jq -e '[.samples.hints[] | select(.functions) | .functions[0].function] as $leading |
           $leading | any(. == "slow_function" or . == "serve_for" or contains("clock_gettime"))' "$summary" >/dev/null &&
        jq -e '.samples.hints[] | select(.cause == "application time")' "$summary" >/dev/null &&
        jq -e '[.samples.hints[].functions[]?.function] | index("slow_function") != null' "$summary" >/dev/null
}
judged_tries samples_try || fail "the server's functions do not lead, slow_function among them: $(jq -c .samples.hints "$summary")"
python3 tests/analysis/report/page_data.py "$work/run/report.html" | grep '"slow_function"' >/dev/null || fail "the page has no samples"
grep -q '^Hints: where samples were' "$work/out" || fail "the terminal says nothing of samples"
