-- SPDX-License-Identifier: MIT
--
-- The README's table of the functions that the processor's trace found slower, called more often or unexpected in the slow
-- requests of two runs, filter/run and late/run, by category.
.mode markdown --wrap 1000
ATTACH 'filter/run/run.db' AS filter;
ATTACH 'late/run/run.db' AS late;
WITH functions AS (
        SELECT category, name, total_ns / 1e6 AS filter_ms, 0 AS late_ms FROM filter.causes WHERE diagnosis = 0 AND class = 'function'
        UNION ALL
        SELECT category, name, 0, total_ns / 1e6 FROM late.causes WHERE diagnosis = 0 AND class = 'function'),
    plain AS (
        SELECT category, replace(replace(replace(name, ' slower', ''), ' called more often', ''), 'unexpected ', '') AS name,
            sum(filter_ms) AS filter_ms, sum(late_ms) AS late_ms
        FROM functions GROUP BY 1, 2),
    placed AS (SELECT *, row_number() OVER (PARTITION BY category ORDER BY filter_ms + late_ms DESC) AS place FROM plain)
SELECT category, group_concat(iif(place <= 4, '`' || name || '`', NULL), ', ') AS "functions, those that added most first",
    iif(total(filter_ms) >= 1, printf(iif(total(filter_ms) < 100, '%.3g ms', '%.1f ms'), total(filter_ms)), '') AS "packet filter run",
    iif(total(late_ms) >= 1, printf(iif(total(late_ms) < 100, '%.3g ms', '%.1f ms'), total(late_ms)), '') AS "late NIC run"
FROM placed GROUP BY category ORDER BY total(filter_ms) + total(late_ms) DESC LIMIT 10;
