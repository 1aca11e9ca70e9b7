#!/usr/bin/env bash
# Time limit: 1500 s
# Every experiment of experiments/causes, with real programs: its first cause is what its line
# "# expect:" says (an extended regular expression of "cause (role)"), its verdict has what "# verdict:"
# says. Where the command "# if:" fails, the machine lacks what it needs beside programs. CAUSE=word
# runs those with it in their name. BYSTANDER=1: a process of the lowest priority burns what is left of
# each core, which must change nothing.
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
PATH=$PATH:/usr/sbin

# A line of the comment on top: expectation FILE WORD
expectation() { sed -n "s/^# $2: //p" "$1"; }

# The programs that an experiment needs and are not here.
missing() {
    local program
    for program in $(expectation "$1" needs); do
        command -v "$program" >/dev/null || echo "$program"
    done
}

# Whether the run in $work/run found what the experiment says. Leaves what it found in $found.
as_expected() {
    local first verdict
    first=$(jq -r '.causes[0] | "\(.cause) (\(.role))"' "$work/run/summary.json")
    verdict=$(jq -r .verdict "$work/run/summary.json")
    found="$first; $verdict"
    grep -qE -- "$(expectation "$1" expect)" <<<"$first" &&
        grep -qE -- "$(expectation "$1" verdict)" <<<"$verdict"
}

# A machine that was busy with other things shows them: four attempts.
try() {
    local attempt status
    for attempt in 1 2 3 4; do
        rm -rf "$work/run"
        "$taillight" run "$1" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
        status=$?
        [ $status -eq 0 ] || [ $status -eq 4 ] || fail "$1: exit $status"
        as_expected "$1" && return
        echo "$1, attempt $attempt: $found"
    done
    return 1
}

if [ "${BYSTANDER:-}" ]; then
    for core in 0 1; do
        # In a session of its own: in one that is preferred to others its nice value is among itself.
        setsid bash -c "{ echo 19 >/proc/self/autogroup; } 2>/dev/null
            exec taskset -c $core chrt --idle 0 sh -c 'while :; do :; done'" &
    done
fi

tried=0 wrong=''
for file in experiments/causes/*"${CAUSE:-}"*.yaml; do
    lacks=$(missing "$file")
    if [ -n "$lacks" ]; then
        echo "$file: left out, there is no" $lacks
        continue
    fi
    condition=$(expectation "$file" if)
    if [ -n "$condition" ] && ! sh -c "$condition" 2>/dev/null; then
        echo "$file: left out, not so here: $condition"
        continue
    fi
    if try "$file"; then echo "$file: ${found%%;*}"; else wrong+=" $file"; fi
    tried=$((tried + 1))
done
[ -z "$wrong" ] || fail "another cause than expected:$wrong"
[ $tried -gt 0 ] || skip "none of the programs is here"
