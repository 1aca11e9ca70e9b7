# SPDX-License-Identifier: MIT
#
# A page with another latency curve: steep_curve.py PAGE UNANSWERED, to stdout. Nearly all of 4,000 requests took 50 us, a few up
# to 5 ms, and so many were never answered: the curve falls at once, far from or right beside where its words stand.
import json
import math
import sys

sys.dont_write_bytecode = True
from page_data import WHERE, carried, packed

page, unanswered = open(sys.argv[1]).read(), int(sys.argv[2])
data = json.loads(carried(page))
requests = 4000
slow = min(40, (requests - unanswered) // 2)
ns, rank = [50000, 60000], [1, requests - unanswered - slow]
for i in range(slow):
    ns.append(70000 + 5e6 * (i + 1) / slow)
    rank.append(requests - unanswered - slow + i + 1)
# What the curve is at: the marks are on it, as they are on a page that was measured.
for i, name in enumerate(data["quantiles"]):
    at = max(1, math.ceil(requests * (100 if name == "max" else float(name[1:])) / 100))
    one = next((ns[k] for k in range(len(ns)) if rank[k] >= at), None)
    for values in (data["latency"], data["uncorrected"]):
        values["value"][i] = one
for curve in data["curves"].values():
    curve.update(ns=ns, rank=rank, count=requests, infinite=unanswered, intervals=None)
# Who held up the slowest message is of no load of ours, with a long name.
data["diagnoses"][0]["views"]["messages"]["id"][0] = "connection 34 from [2001:db8:85a3::8a2e:370:7334]:56994 (not of this load)"
sys.stdout.write(WHERE.sub(packed(data), page, count=1))
