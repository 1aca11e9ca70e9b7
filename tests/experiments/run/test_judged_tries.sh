#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What judged_tries takes for a reason to try again: that the host or other programs had the cores, not what the test itself
# runs, nor a failure on cores that were ours.
# Runs beside others: the cores' clocks are the test's own.
. "$(dirname "$0")/../run_lib.sh"
set +e
fails() { echo try >>"$work/tries"; return 1; }
# outcome TRIES EXIT WHAT, with the clocks as they are defined now
outcome() {
    : >"$work/tries"
    (judged_tries fails) >"$work/out"
    local status=$?
    [ $status = "$2" ] && [ "$(wc -l <"$work/tries")" = "$1" ] ||
        fail "$3: exit $status after $(wc -l <"$work/tries") tries: $(cat "$work/out")"
    echo "$3: $(tail -n 1 "$work/out")"
}
ticks=0 stolen_a_try=0
core_ticks() { # a hundred a try, read once before it and once after
    ticks=$(($(wc -l <"$work/tries") * 100))
    echo "$ticks $((ticks / 100 * stolen_a_try))"
}
(
    cores_taken() { echo 4; }
    outcome 3 1 'cores of our own'
    stolen_a_try=2
    outcome 6 77 'a host that takes cores'
    stolen_a_try=0
    cores_taken() { echo 60; }
    outcome 6 77 'other programs'
    # They end after the fourth try: it began beside them.
    cores_taken() { [ "$(wc -l <"$work/tries")" -lt 4 ] && echo 60 || echo 0; }
    outcome 6 1 'other programs for a while'
) || exit
# By the machine's clocks: 80 of 100 ticks used, by whom?
idle_ticks() { echo x >>"$work/reads"; echo "$((1000 + 100 * $(wc -l <"$work/reads"))) $((20 * $(wc -l <"$work/reads")))"; }
mine=0
own_ticks() { echo y >>"$work/owned"; echo $((mine * $(wc -l <"$work/owned"))); }
[ "$(cores_taken)" = 80 ] || fail "others that have 80 %"
mine=75
[ "$(cores_taken)" = 5 ] || fail "75 of 80 % are our own"
mine=95
[ "$(cores_taken)" = 0 ] || fail "more than there is"
# What is our own: a child's child as well, and not what ends with nobody.
# shellcheck source=/dev/null
. <(sed -n '/^own_ticks() {/,/^}/p' "$(dirname "$0")/../run_lib.sh")
before=$(own_ticks)
(
    (while [ ! -e "$work/enough" ]; do :; done)
    true
) &
for _ in $(seq 300); do
    [ $(($(own_ticks) - before)) -lt 10 ] || break
    sleep 0.1
done
grown=$(($(own_ticks) - before))
touch "$work/enough"
wait
[ $grown -ge 10 ] || fail "a child's child that spins has had $grown ticks"
