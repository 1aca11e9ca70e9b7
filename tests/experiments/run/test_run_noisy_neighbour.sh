#!/usr/bin/env bash
# A processor hog on memcached's core during the second half: it is the top cause of what the server
# adds to the second half, by name and on the application core, and none of the first half's.
. tests/experiments/run_lib.sh
need_capture
need_program yes coreutils
sed -e 's/duration: 10s/duration: 2s/' -e 's/start: 5s, stop: 10s/start: 1s, stop: 2s/' \
    -e 's/0s-5s, 5s-10s/0s-1s, 1s-2s/' experiments/quickstart-noisy-neighbour.yaml >"$work/noisy.yaml"
grep -q 'start: 1s' "$work/noisy.yaml" && grep -q '0s-1s, 1s-2s' "$work/noisy.yaml" ||
    fail "the example has changed; so must this test"
run="$work/run"
# Of two cores one is the client's and the capture's: that it was kept from it may well be more, and rightly so. What
# the virtual machine's host did stands apart.
noisy_try() {
    conclusive_run "$work/noisy.yaml" --quiet
    [ "$(cat "$work/out")" = "$run/report.html" ] || fail "--quiet prints more than the report's path"
    # diagnoses: 1 the whole run, then one per window, in the experiment's order.
    top=$(sqlite3 "$run/run.db" "select name || ' (' || role || ')' from causes where \
        diagnosis = (select id from diagnoses order by id limit 1 offset 2) and name <> 'virtual CPU taken away' \
        and role <> 'client' order by total_ns desc limit 1")
    first=$(sqlite3 "$run/run.db" "select count(*) from causes where name = 'yes' and \
        diagnosis = (select id from diagnoses order by id limit 1 offset 1)")
    echo "top cause of the second half: $top; yes among those of the first: $first"
    [ "$first" = 0 ] && [ "$top" = "yes (A)" ] # where others have the cores, what came in the first half waits in the second
}
judged_tries noisy_try || fail "the second half blames $top first, not yes (A), or the first half yes, which was not there ($first)"
# The capture works on the load's core: in so short a run it wrote nothing meanwhile.
[ -s "$run/server/events.tlog" ] && [ ! -e "$run/server/events-000001.tlog" ] || fail "a segment was written beside the load"
check_nothing_left "$run" ""
