# SPDX-License-Identifier: MIT
#
# What a comparison of two runs says of their percentiles, wherever it says it, beside the runs' own words:
# compared_numbers.py COMPARISON.json TERMINAL PAGE.dom BASE/summary.json CANDIDATE/summary.json
# Prints each percentile that is told in two ways, or told in one place and kept back in another; exit 1 then.
import html
import json
import re
import sys

UNITS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
NAMES = ("p50", "p90", "p99", "p99.9", "p99.99", "max")
TIME = r"[\d.,]+ (?:ns|us|µs|ms|s)\b"
said = {}  # (side, percentile): [(nanoseconds or None when kept back, where)]


def note(side, name, value, where):
    if isinstance(value, str):
        number, unit = value.replace(",", "").split()
        value = float(number) * UNITS[unit]
    said.setdefault((side, name), []).append((value, where))


def micros(value):
    return None if value is None else value * 1000


comparison = json.load(open(sys.argv[1]))
terminal = open(sys.argv[2]).read()
page = re.sub(r"<script.*?</script>|<style.*?</style>", "", open(sys.argv[3]).read(), flags=re.S)
page = " ".join(html.unescape(re.sub(r"<[^>]+>", "\n", page)).split())
table = re.search(r"Latency base candidate change 99 % (.*?) Percentiles ", page)
for number, side in enumerate(("base", "candidate")):
    own = json.load(open(sys.argv[4 + number]))["latency_us"]
    for name in NAMES:
        note(side, name, micros(own.get(name)), "the run's summary.json")
        note(side, name, micros(comparison[side]["latency_us"].get(name)), "the comparison's JSON")
    for one in comparison["percentiles"]:
        note(side, one["percentile"], micros(one.get(side + "_us")), "the percentiles of the JSON")
    for row in re.finditer(r"^  (p[\d.]+|max) +(" + TIME + r"|-) +(" + TIME + r"|-)", terminal, flags=re.M):
        note(side, row[1], None if row[2 + number] == "-" else row[2 + number], "the terminal")
    cell = r"(" + TIME + r"|too few requests)(?: \[[^]]*\])?"
    for row in re.finditer(r"(?<!\S)(p[\d.]+|max) " + cell + " " + cell, table[1] if table else ""):
        value = row[2 + number]
        note(side, row[1], None if value.startswith("too") else value, "the page")

wrong = 0
for (side, name), places in sorted(said.items()):
    values = [value for value, _ in places]
    known = [value for value in values if value is not None]
    # Three digits are printed: half of the third, on both sides.
    if known and (len(known) < len(values) or max(known) - min(known) > 0.0101 * max(known)):
        wrong += 1
        print(f"FAIL: {side} {name} differs: " + "; ".join(f"{value} ({where})" for value, where in places))
# A change and its interval are the same characters wherever they stand: a table's row, a sentence.
CHANGE = re.compile(r"(?<!\S)(p[\d.]+|max)(?: " + TIME + r"(?: \[[^]]*\])?){0,2} ([+-][\d.]+) % \[([+-][\d.]+)(?: %)?, ([+-][\d.]+)(?: %)?\]")
changes = {}
for text in (" ".join(terminal.split()), page.replace("\N{MINUS SIGN}", "-")):
    for one in CHANGE.finditer(text):
        changes.setdefault(one[1], []).append(one.groups()[1:])
for name, ways in sorted(changes.items()):
    if len(set(ways)) > 1 or len(ways) < 4:
        wrong += 1
        print(f"FAIL: the change of {name}: " + "; ".join(f"{change} % [{low}, {high}]" for change, low, high in ways))
print(f"{len(changes)} changes, each in {min(map(len, changes.values()), default=0)} places and more")

places = {where for all in said.values() for _, where in all}
missing = {"the terminal", "the page"} - places
if missing:
    print("FAIL: no percentile is found in " + " and ".join(sorted(missing)))
print(f"{len(said)} percentiles in {len(places)} places")
sys.exit(1 if wrong or missing else 0)
