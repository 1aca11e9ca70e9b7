#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# openmetrics.py METRICS LINES SAVED: what a watch served is OpenMetrics (the reference parser takes
# it), and says what its lines of JSON say and what the windows hold that it saved, each analyzed:
# those of '>131.072ms', a bound of the histogram's. Exit 77: there is no parser here.
import json
import math
import pathlib
import sqlite3
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    sys.exit(77)

with open(sys.argv[1], encoding="utf-8") as file:
    families = {family.name: family for family in text_string_to_metric_families(file.read())}
with open(sys.argv[2], encoding="utf-8") as file:
    lines = [json.loads(line) for line in file]


def total(name, **labels):
    return sum(s.value for s in families[name].samples
               if s.name == name + "_total" and labels.items() <= s.labels.items())


def histogram(name, **labels):
    """Its cumulated buckets by bound, its count and its sum."""
    of = [s for s in families[name].samples if labels.items() <= s.labels.items()]
    buckets = {float(s.labels["le"]): s.value for s in of if s.name == name + "_bucket"}
    assert list(buckets.values()) == sorted(buckets.values())
    count = next(s.value for s in of if s.name == name + "_count")
    assert buckets[math.inf] == count
    return buckets, count, next(s.value for s in of if s.name == name + "_sum")


seen = int(total("taillight_intervals"))
assert 0 < seen <= len(lines), "an interval may have ended since"
lines = lines[:seen]
requests = sum(line["requests"] for line in lines)
joined = sum(line.get("joined", 0) for line in lines)
assert total("taillight_requests") == requests, (total("taillight_requests"), requests)
assert total("taillight_joined_requests") == joined
names = {server["server"] for line in lines for server in line["servers"]}
assert {s.labels["server"] for s in families["taillight_requests"].samples} == names and len(names) == 2, names
for name in names:
    of = [server for line in lines for server in line["servers"]
          if server["server"] == name and server["requests"]]
    requests = sum(server["requests"] for server in of)
    joined = sum(server["joined"] for server in of)
    assert total("taillight_requests", server=name) == requests > 0
    buckets, count, seconds = histogram("taillight_latency_seconds", server=name)
    assert count == requests and seconds > 0
    slowest = max(server["latency_us"]["max"] for server in of) / 1e6
    below = max((bound for bound in buckets if bound < slowest), default=0)
    assert buckets[below] < count, "the slowest request is in its bucket"
    stages = {s.labels["stage"] for s in families["taillight_stage_seconds"].samples}
    assert stages == {"R core", "A core", "application", "server stack"}, stages
    assert all(histogram("taillight_stage_seconds", server=name, stage=stage)[1] <= joined for stage in stages)
added = sum(cause["total_us"] for line in lines for server in line["servers"]
            for cause in server.get("causes", [])) / 1e6
assert math.isclose(total("taillight_cause_seconds"), added, rel_tol=1e-6), (added,)
stopped = [s for s in families["taillight_cause_seconds"].samples
           if s.labels["cause"].startswith("stopped by a signal")]
assert stopped and stopped[0].labels["role"] == "A" and stopped[0].value > 0.1

# Every request beyond the trigger is in one window, and in no second one.
TRIGGER_NS = 131_072_000


def in_windows(condition):
    return sum(sqlite3.connect(folder / "run.db").execute(f"select count(*) from requests where {condition}")
               .fetchone()[0] for folder in saved)


saved = list(pathlib.Path(sys.argv[3]).iterdir())
slow = 0
for name in names:
    buckets, count, _ = histogram("taillight_latency_seconds", server=name)
    bound = min(buckets, key=lambda bound: abs(bound - TRIGGER_NS / 1e9))
    assert math.isclose(bound, TRIGGER_NS / 1e9), bound
    slow += count - buckets[bound]
assert total("taillight_saved_windows") == len(saved) == sum(line["windows"] for line in lines)
assert total("taillight_unsaved_windows") == 0
assert slow == in_windows(f"latency_ns > {TRIGGER_NS}") > 0, (slow, in_windows(f"latency_ns > {TRIGGER_NS}"))
assert in_windows("true") <= total("taillight_requests"), in_windows("true")
