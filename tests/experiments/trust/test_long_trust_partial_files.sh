#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Signals to `analyze`, `report` and `compare`, at random instants and while something is being
# written: of their outputs nothing is left that is not whole. After SIGKILL the next command removes
# it. test_long_trust_partial_files.sh [ROUNDS]
# Time limit: 400 s
. tests/experiments/run_lib.sh
need_capture
experiment "$work/run.yaml" netns 2k 2s <<END
servers: {cache: {kind: memcached}}
END
run="$work/run"
"$taillight" run "$work/run.yaml" --out "$run" --quiet >"$work/out" 2>"$work/run.err"
case $? in 0 | 4) ;; *) fail "the run to be analyzed" ;; esac
cp -r "$run" "$work/base"

partials() { find "$run" "$work/base" "$work/plots" "$work/pages" -name '*.partial'; }
check_whole() { # WHAT
    local page
    mapfile -t left < <(partials)
    [ ${#left[@]} -eq 0 ] || fail "$1 leaves ${left[*]}"
    [ ! -e "$run/run.db" ] || [ "$(sqlite3 "$run/run.db" 'pragma quick_check')" = ok ] || fail "$1: run.db is not whole"
    [ ! -e "$run/summary.json" ] || sqlite3 :memory: "select json(readfile('$run/summary.json'))" >/dev/null ||
        fail "$1: summary.json is not whole"
    for page in "$run/report.html" "$work/pages/"*.html; do
        [ ! -e "$page" ] || tail -c 20 "$page" | grep -q '</html>' || fail "$1: $page is not whole"
    done
}

# Each with what it writes; the time that it takes undisturbed is that from which instants are drawn.
commands=("analyze $run" "report $run --perfetto $work/pages/trace --plots $work/plots --out $work/pages/view.html"
    "report $run" "compare $work/base $run --out $work/pages/compare.html")
mkdir "$work/plots" "$work/pages"
declare -a took
for i in "${!commands[@]}"; do
    began=$(date +%s%N)
    # shellcheck disable=SC2086 # words
    "$taillight" ${commands[i]} --quiet >"$work/out" 2>"$work/cmd.err"
    case $? in 0 | 4) ;; *) fail "${commands[i]}" ;; esac
    took[i]=$((($(date +%s%N) - began) / 1000))
done

signals=(INT TERM HUP KILL)
sent=0 written=0 late=0
for ((round = 0; round < ${1:-8}; round++)); do
    for i in "${!commands[@]}"; do
        signal=${signals[(round + i) % 4]}
        # Shells have what they start in the background ignore SIGINT.
        # shellcheck disable=SC2086 # words
        env --default-signal "$taillight" ${commands[i]} --quiet >"$work/out" 2>"$work/cmd.err" &
        pid=$!
        if [ $((round % 2)) -eq 0 ]; then
            usleep=$((RANDOM * 32768 + RANDOM))
            sleep "$(printf '0.%06d' $((usleep % (took[i] < 900000 ? took[i] : 900000))))"
        else # as soon as something is being written
            while [ -z "$(partials)" ] && kill -0 $pid 2>/dev/null; do :; done
        fi
        if kill -"$signal" $pid 2>/dev/null; then sent=$((sent + 1)); else late=$((late + 1)); fi
        wait $pid 2>/dev/null
        if [ "$signal" = KILL ]; then
            [ -z "$(partials)" ] || written=$((written + 1))
            # shellcheck disable=SC2086 # words
            "$taillight" ${commands[i]} --quiet >"$work/out" 2>"$work/cmd.err"
        fi
        check_whole "SIG$signal, round $round, ${commands[i]%% *}"
    done
done
echo "$sent signals, $late came too late; SIGKILL left something $written times, and the next command removed it"
[ $((sent * written)) -gt 0 ] || fail "no signal came in time"
