#!/usr/bin/env bash
# Runs every test under BUILD and tests/**/test_*.sh, before whatever else wants the cores
# (preferred.sh), and prints a line for each as it ends. The machine's cores are part of what the
# end-to-end tests measure, so a test has the machine to itself, as far as that is ours to say,
# unless it is known to compute only. Those run first, twice as many at a time as there are cores and one, since
# some of them also wait: all of the folders in `computing`, but for sources that say "Needs the machine
# to itself", and elsewhere the sources that say "Runs beside others" (each at the beginning of a
# comment's line).
# A test that failed beside others, or while the host took more than a hundredth of the cores (steal), is
# tried once more when all the others are through: its first failure is printed, and the sum counts such
# tests. No other test gets a second try, none with TAILLIGHT_TRUST=1 or TAILLIGHT_ONCE=1.
# A script that fails without a line "FAIL" has its last steps told (steps.sh).
# Exit 77 of a test is a skip, with its reason as the last line it printed; what a test that passes leaves out is
# told below its line. TAILLIGHT_NO_SKIP=1 turns skips into failures; TAILLIGHT_LONG=1 adds the long tests (test_long_*), and what others ask behind
# rest_is_long (ports.sh); TAILLIGHT_TRUST=1 runs those of tests/trust.list, which may then do more,
# and test_long_trust_*, and nothing else; TEST=pattern picks by name. A test has five minutes, or what its script's line "# Time limit: N s"
# says, or TEST_TIMEOUT seconds.
set -u
computing='analysis base loadgen/method tree workloads'
# What a test that passed left out: of a cmocka program each case that it skipped, with what it said before that; of a
# script its lines "without WHAT: why".
left_out() {
    awk '/^\[  SKIPPED \] [A-Za-z0-9_]+$/ && open == $4 { printf "\n        without %s%s", $4, said ? ": " said : ""; open = "" }
        /^without [^:]+: / { printf "\n        %s", $0 }
        !/^\[/ { said = $0 } /^\[ RUN / { open = $4; said = "" }'
}
core_times() { awk '/^cpu / {for (i = 2; i <= 9; i++) all += $i; print $9, all}' /proc/stat; } # stolen, all
# --one NAME OUTCOMES PLACE: one test, to its line and its outcome; beside others, alone, or for the
# last time, when a failure stands.
if [ "${1:-}" = --one ]; then
    name=$2 log=$(mktemp) limit='' command=("$BUILD/$2") disturbed=''
    export TEST_STEPS=$log.steps BASH_ENV=tests/steps.sh
    case "$name" in *.sh)
        limit=$(sed -n 's/^# Time limit: \([0-9]*\) s$/\1/p' "$name")
        command=(bash "$name")
        ;;
    esac
    started=$(date +%s%N)
    read -r stolen all <<<"$(core_times)"
    timeout "${TEST_TIMEOUT:-${limit:-300}}" "${command[@]}" >"$log" 2>&1 </dev/null
    status=$?
    seconds=$((($(date +%s%N) - started) / 10000000))
    seconds=$(printf '%d.%02d' $((seconds / 100)) $((seconds % 100)))
    if [ $status -eq 0 ]; then
        outcome=passed text=$(printf '  ok    %-52s %7ss' "$name" "$seconds"; left_out <"$log")
        left_out <"$log" >>"$3.left_out"
    elif [ $status -eq 77 ] && [ -z "${TAILLIGHT_NO_SKIP:-}" ]; then
        outcome=skipped text=$(printf '  skip  %-52s %s' "$name" "$(tail -n 1 "$log")")
    else
        read -r stolen_then all_then <<<"$(core_times)"
        case "$4" in
            beside) disturbed='beside others' ;;
            alone) [ $(((stolen_then - stolen) * 100)) -le $((all_then - all)) ] || disturbed='while the host took cores away' ;;
        esac
        outcome=failed word=FAIL
        [ -z "$disturbed" ] || outcome="again $name" word=again
        text=$(
            printf '  %-5s %-52s %7ss (exit %d%s)\n' $word "$name" "$seconds" "$status" "${disturbed:+, $disturbed}"
            grep -m 1 '^FAIL' "$log" | sed 's/^/        /' # often above what follows it
            sed 's/^/        /' "$log" | tail -n 40
            grep -q '^FAIL' "$log" || { echo '        its last steps:'; tail -n 12 "$log.steps" | cut -c 1-300 | sed 's/^/        /'; } 2>/dev/null
        )
    fi
    flock "$3" printf '%s\n' "$text" # whole, whoever else ends just now
    echo "$outcome" >>"$3"
    rm -f "$log" "$log.steps"
    exit
fi
build=${1:?usage: run_tests.sh BUILD}
export BUILD="$build"
cd "$(dirname "$0")/.." || exit 1
# jq 1.6 -e agrees where it was given nothing to read: a check of what was not even written would hold.
jq() {
    local said status
    [[ " $* " =~ \ -[a-zA-Z]*e ]] || { command jq "$@"; return; }
    said=$(command jq "$@")
    status=$?
    [ -z "$said" ] || printf '%s\n' "$said"
    [ $status -ne 0 ] || [ -n "$said" ] || return 4
    return $status
}
export -f jq

# A version manager's python3 is a script that asks itself at each start which one is meant (ten times what
# Python itself takes to start): it is asked once.
python=$(command -v python3) && [ "$(head -c 2 "$python")" = '#!' ] &&
    python=$(python3 -c 'import sys; print(sys.executable)') && PATH=${python%/*}:$PATH
trusted=()
[ -z "${TAILLIGHT_TRUST:-}" ] || mapfile -t trusted < <(sed 's/ *#.*//; /^$/d' tests/trust.list)
wanted() {
    case "$1" in
        *${TEST:-}*) ;;
        *) return 1 ;;
    esac
    if [ -n "${TAILLIGHT_TRUST:-}" ]; then
        [[ $1 == *trust* ]] || printf '%s\n' "${trusted[@]}" | grep -qxF "${1%.sh}"
        return
    fi
    case "$1" in
        */test_long_*) [ -n "${TAILLIGHT_LONG:-}" ] ;;
    esac
}
computes() { # NAME
    local source=$1 folder
    [ -e "$source" ] || source=$source.c
    for folder in $computing; do
        [[ $source == tests/$folder/* ]] || continue
        ! grep -qE '^(#|//) Needs the machine to itself' "$source"
        return
    done
    grep -qE '^(#|//) Runs beside others' "$source"
}
outcomes=$(mktemp)
trap 'rm -f "$outcomes"*' EXIT
beside=() alone=()
# Scripts first: among them are those that take longest. Shuffled, the same way each time, so that those of a
# folder, which compute or wait alike, are not beside one another.
for name in $(find tests -name 'test_*.sh' | sort | shuf --random-source=<(yes)) $(find tests -name 'test_*.c' | sort); do
    name=${name%.c}
    wanted "$name" || continue
    case "$name" in *.sh) ;; *) [ -x "$build/$name" ] || continue ;; esac
    if computes "$name"; then beside+=("$name"); else alone+=("$name"); fi
done
for name in "${trusted[@]}"; do # a list that names what is not there would check less than it says
    [ -n "${TEST:-}" ] || printf '%s\n' "${beside[@]%.sh}" "${alone[@]%.sh}" | grep -qxF "$name" || {
        echo "tests/trust.list: there is no $name"
        exit 1
    }
done
one() { tests/preferred.sh tests/run_tests.sh --one "$1" "$outcomes" "$2"; }
export -f one
export outcomes
place=${TAILLIGHT_TRUST:-${TAILLIGHT_ONCE:-}}
place=${place:+last}
{ [ ${#beside[@]} -eq 0 ] || printf '%s\n' "${beside[@]}"; } |
    xargs -r -P $((2 * $(nproc) + 1)) -I '{}' bash -c 'one "$@"' one '{}' "${place:-beside}"
for name in ${alone[@]+"${alone[@]}"}; do one "$name" "${place:-alone}"; done
mapfile -t again < <(sed -n 's/^again //p' "$outcomes")
for name in ${again[@]+"${again[@]}"}; do one "$name" last; done
count() { grep -c "^$1" "$outcomes"; }
missing=$((${#beside[@]} + ${#alone[@]} + ${#again[@]} - $(wc -l <"$outcomes")))
[ $missing -eq 0 ] || echo "$missing tests came to no end"
cases=$(grep -c . "$outcomes.left_out" 2>/dev/null)
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "${cases:-0}" -eq 0 ] || echo "of tests that passed, $cases part$([ "$cases" -eq 1 ] || echo s) left out: see \"without\""
[ ${#again[@]} -eq 0 ] || echo "of these, tried twice: ${again[*]}"
[ $missing -eq 0 ] && [ "$(count failed)" -eq 0 ] && [ -s "$outcomes" ]
