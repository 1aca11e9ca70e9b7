# SPDX-License-Identifier: MIT
#
# How well a run in $work/run names what was done to its messages, where it is known from when to when that was. Sourced; expects `fail`.
set -u

# What slow messages have of what was done to them between two of their stamps, and of that cause: of how many that is at least half of
# what made them slow (mostly), of how many of these it is the first cause (first), and what both are of these. Each line on standard
# input is `since,until` in ns of the server's clock, or `since,until,ns` of which that many count (the rest was others'). With `own` it
# was done to one message only: of those that it is within the stamps of, that whose last one is the earliest, for of several that were
# read together the others waited. score NAME FROM TO [own]
score() {
    local whose="since < $3 AND until > $2"
    [ "${4:-}" != own ] || whose="id = (SELECT id FROM run.requests WHERE $2 <= since AND $3 >= until ORDER BY $3 LIMIT 1)"
    awk -F, '{ print $1 "," $2 "," (NF > 2 ? $3 : $2 - $1) }' >"$work/done"
    sqlite3 -json :memory: "ATTACH '$work/run/run.db' AS run" 'CREATE TABLE done(since INTEGER, until INTEGER, ns INTEGER)' ".import --csv $work/done done" "
WITH fault AS (
        SELECT since - value AS since, until - value AS until, ns * 1.0 / (until - since) AS share
        FROM done, run.meta WHERE key = 'begin_host_ns'),
    met AS (
        SELECT request, deviation_ns, sum(share * (min(until, $3) - max(since, $2))) AS ns
        FROM run.diagnosed JOIN run.requests ON id = request JOIN fault ON $whose
        WHERE diagnosis = 0 GROUP BY request),
    named AS (
        SELECT request, instr(name, '$1') > 0 AS right, sum(ns) AS ns FROM run.attributions JOIN run.causes USING (diagnosis, cause)
        WHERE diagnosis = 0 GROUP BY request, iif(instr(name, '$1'), -1, cause)),
    each AS (
        SELECT met.*,
            (SELECT right FROM named WHERE named.request = met.request ORDER BY ns DESC LIMIT 1) AS first,
            (SELECT sum(ns) FROM named WHERE named.request = met.request AND right) AS named_ns
        FROM met)
SELECT count(*) AS messages, total(ns) / 1e6 AS ms, total(named_ns) / 1e6 AS named_ms,
    total(ns >= deviation_ns / 2) AS mostly, total(ns >= deviation_ns / 2 AND first) AS first,
    total(iif(ns >= deviation_ns / 2, ns, 0)) / 1e6 AS mostly_ms,
    total(iif(ns >= deviation_ns / 2, named_ns, 0)) / 1e6 AS mostly_named_ms
FROM each" || fail "no score"
}
