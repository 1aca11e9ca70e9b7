# SPDX-License-Identifier: MIT
#
# What a run says of the same number, wherever it says it: one_number.py SUMMARY.json TERMINAL PAGE.dom
# [NUMBER...] (what `taillight report --full` printed, and the page after its scripts have run). Prints each number that
# is said in two ways, and how often each was found; exit 1 when two differ by more than their rounding, one of the
# named ones is not in two places, or a time is written in another way than times are (written_times.py), be it in
# summary.json's sentences: then two that are the same number would not look so.
import html
import json
import re
import sys

sys.dont_write_bytecode = True
from written_times import otherwise_written, shown

UNITS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
TIME = r"([\d.,]+) (ns|us|µs|ms|s)\b"
summary = json.load(open(sys.argv[1]))
terminal = " ".join(open(sys.argv[2]).read().split())
dom = page = open(sys.argv[3]).read()
page = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
page = " ".join(html.unescape(re.sub(r"<[^>]+>", "\n", page)).split())
said = {}  # number: [(value, where)]


def note(number, value, where):
    said.setdefault(number, []).append((float(value), where))


def find(number, pattern, where, text, many=True):
    """Each match's groups: a time (value, unit), or one plain value."""
    for match in re.finditer(pattern, text):
        groups = [group for group in match.groups() if group is not None]
        value = float(groups[0].replace(",", ""))
        note(number, value * (UNITS[groups[1]] if len(groups) > 1 else 1), where)
        if not many:
            return


for name, us in summary["latency_us"].items():
    if us is not None and re.match(r"p[\d.]+$|max$", name):
        note(name, us * 1e3, "summary.json")
for name in ("requests", "joined"):
    note(name, summary[name], "summary.json")

for where, text in (("the terminal", terminal), ("the page", page)):
    find("p99", r"\b1 in 100 requests took " + TIME, where, text)
    find("p50", r"\(usually " + TIME, where, text)
    find("p99", r"The slowest 1 % of requests \(>= " + TIME, where, text)
    find("slow messages", r"The slowest 1 % of requests \(>= [^,]*, ([\d,]+) messages", where, text)
    find("joined", r"([\d,]+) of [\d,]+ requests joined", where, text)
    find("requests", r"[\d,]+ of ([\d,]+) requests joined", where, text)
find("slow messages", r"extra time of the ([\d,]+) slow messages", "the page's bar", page)
find("p50", r"Half of the requests within " + TIME, "the page's figures", page)
find("p99", r"\b99 in 100 within " + TIME, "the page's figures", page)
find("p99.9", r"\b999 in 1,000 within " + TIME, "the page's figures", page)
find("requests", r"\bRequests ([\d,]+)\b", "the page's figures", page)
evidence = re.search(r"How much (.*?), from the intended send time", page)
for name in ("p50", "p90", "p99", "p99.9", "p99.99"):
    if evidence:
        find(name, r"(?<![\d.])" + re.escape(name) + " " + TIME, "the page's evidence", evidence[1])
for end, pattern in (("low", TIME + " to [\\d.,]+ \\w+"), ("high", r"[\d.,]+ \w+ to " + TIME)):
    find("p99 " + end, r"p99, 95 %: " + pattern, "the page's figures", page)
for end, pattern in (("low", TIME + " and"), ("high", r"[\d.,]+ \w+ and " + TIME)):
    find("p99 " + end, r"p99 lies between " + pattern, "the page's evidence", page)
# The terminal's table, column by column.
row = re.search(r"from intended ((?:(?:[\d.,]+ (?:ns|us|ms|s)|-) ?){6})", terminal)
if row:
    cells = re.findall(r"[\d.,]+ (?:ns|us|ms|s)|-", row[1])
    for name, cell in zip(("p50", "p90", "p99", "p99.9", "p99.99", "max"), cells):
        if cell != "-":
            find(name, TIME, "the terminal's table", cell)
for end, label in (("low", "95 % from"), ("high", "95 % to")):
    row = re.search(label + r" ((?:(?:[\d.,]+ (?:ns|us|ms|s)|-) ?){6})", terminal)
    cells = re.findall(r"[\d.,]+ (?:ns|us|ms|s)|-", row[1]) if row else []
    if len(cells) == 6 and cells[2] != "-":
        find("p99 " + end, TIME, "the terminal's table", cells[2])
# What the first sentences say of a cause is what the page's bar has of those with the same words.
bar = re.search(r'<ul class="bar-words">(.*?)</ul>', dom, flags=re.S)
parts = re.findall(r"<b[^>]*>(\d+) %</b><span[^>]*>(.*?)</span>", bar[1] if bar else "", flags=re.S)
parts = [(int(share), html.unescape(words)) for share, words in parts]
shares = []
for share, words in re.findall(r"\b[Ff]or (\d+) %(?: of that extra time)? (.*?)(?=; for \d+ %|\. |\.$)", summary["lede"]):
    same = [part for part, others in parts if others == words]
    if not same or abs(sum(same) - int(share)) > len(same):
        shares.append(f'"{words}": {share} % in the first sentences, {same} % in the bar')

wrong = len(shares)
for difference in shares:
    print(f"FAIL: {difference}")
for number, places in sorted(said.items()):
    least, most = min(value for value, _ in places), max(value for value, _ in places)
    # Three digits are printed: half of the third, on both sides.
    if most - least > 0.0101 * most:
        wrong += 1
        print(f"FAIL: {number} differs: " + "; ".join(f"{value:g} ({where})" for value, where in places))
for one in re.finditer(r".{30}\d us\b", shown(re.sub(r"<pre.*?</pre>", "", dom, flags=re.S))):
    wrong += 1
    print(f"FAIL: the page writes us, elsewhere µs: {one[0]}")
sentences = "\n".join(str(summary.get(name) or "") for name in ("lede", "remedy", "verdict"))
for where, text in (("the terminal", terminal), ("the page", shown(dom)), ("summary.json", sentences)):
    for time in otherwise_written(text):
        wrong += 1
        print(f"FAIL: {where} writes a time in another way: {time}")
compared = [number for number, places in said.items() if len({where for _, where in places}) > 1]
print(f"{len(compared)} numbers said in more than one place: " + ", ".join(sorted(compared)))
missing = set(sys.argv[4:]) - set(compared)
if missing:
    print("FAIL: not in two places: " + ", ".join(sorted(missing)))
sys.exit(1 if wrong or missing else 0)
