# SPDX-License-Identifier: MIT
#
# What a sweep or a study says of each percentile, wherever it says it:
# set_numbers.py sweep.json|study.json TERMINAL PAGE.dom
# Prints each number that is told in two ways, or told in one place and kept back in another, and each time that is not
# written as times are (written_times.py); exit 1 then.
import html
import json
import re
import sys

sys.dont_write_bytecode = True
from written_times import otherwise_written, shown

UNITS = {"ns": 1e-3, "us": 1, "µs": 1, "ms": 1e3, "s": 1e6}
NUMBER = r"[\d.,]+"
TIME = r"(?:[\d.,]+ (?:ns|us|ms|s)|never|-)"
said = {}  # (row, number): {where: value}


def value_of(text):
    """Microseconds; a word for what has no number."""
    if text in ("-", "–", "nan", "too few requests"):
        return "too few"
    if text == "never":
        return text
    number, unit = text.split(" ")
    return float(number.replace(",", "")) * UNITS[unit]


def of_json(values, name):
    if name not in values:
        return "too few"
    return "never" if values[name] is None else values[name]


def note(row, number, value, where):
    said.setdefault((row, number), {})[where] = value


def note_range(row, number, text, where):
    """ "[low, high]", or nothing of it. """
    low, high = text.strip("[]").split(", ") if text else (None, None)
    for end, value in (("low", low), ("high", high)):
        note(row, f"{number} {end}", "none" if value is None else value_of(value), where)


def note_pair(row, number, pair, where):
    for i, end in enumerate(("low", "high")):
        value = "none" if pair is None else "never" if pair[i] is None else pair[i]
        note(row, f"{number} {end}", value, where)


def cells_of(page, caption):
    """The rows of the table with that caption, a list of texts each."""
    table = re.search(r"<table[^>]*>(?:(?!</table>).)*" + caption + r".*?</table>", page, flags=re.S)
    rows = re.findall(r"<tr.*?</tr>", table[0], flags=re.S)
    return [[" ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split())
             for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.S)] for row in rows]


def page_cell(row, number, text, where):
    """ "12.3 µs [12.0 µs, never]"; what follows is another number's. """
    time = r"(?:[\d.,]+ (?:ns|µs|ms|s)|never|–|too few requests)"
    match = re.match(rf"({time})(?: (\[{time}, {time}\]))?", text)
    note(row, number, value_of(match[1]), where)
    note_range(row, number, match[2], where)
    pooled = re.search(rf"pooled ({time})(?: (\[{time}, {time}\]))?", text)
    if pooled:
        note(row, number + " pooled", value_of(pooled[1]), where)


def sweep(document, terminal, page):
    names = ("p50", "p99", "p99.9")
    cell = rf" +({TIME}) +(\[{TIME}, {TIME}\]|-)"
    lines = re.findall(rf"^ +({NUMBER}) +({NUMBER}){cell}{cell}{cell} +(\S+) +(ok|n/a)$", terminal, flags=re.M)
    rows = cells_of(page, "All runs in the order they were made")[1:]
    assert len(lines) == len(rows) == len(document["points"]), (len(lines), len(rows), len(document["points"]))
    for i, (point, line, row) in enumerate(zip(document["points"], lines, rows)):
        for k, key in enumerate(("offered_rate", "achieved_rate")):
            note(i, key, point[key], "the JSON")
            note(i, key, float(line[k].replace(",", "")), "the terminal")
            note(i, key, float(row[k].replace(",", "")), "the page")
        for k, name in enumerate(names):
            note(i, name, of_json(point["latency_us"], name), "the JSON")
            note_pair(i, name, point["ci_us"][name], "the JSON")
            note(i, name, value_of(line[2 + 2 * k]), "the terminal")
            note_range(i, name, None if line[3 + 2 * k] == "-" else line[3 + 2 * k], "the terminal")
            page_cell(i, name, row[2 + k], "the page")
        note(i, "verdict", point["verdict"], "the JSON")
        note(i, "verdict", line[9], "the terminal")
        note(i, "verdict", row[-1].split(":")[0], "the page")


def study(document, terminal, page):
    names = [name for name in ("p25", "p50", "p90", "p99", "p99.9", "p99.99")]
    rows = cells_of(page, "What each came to")
    columns = [name for name in rows[0] if name in names]
    for step in document["list"]:
        if step["study"]:
            continue
        several = step["runs"] > 1
        line = re.search(rf"^\| {re.escape(step['step'])} \|(.*)\|$", terminal, flags=re.M)[1].split("|")
        row = next(row for row in rows if row[0].split()[:1] == [step["step"]])
        for where, count in (("the JSON", step["requests"]), ("the terminal", line[1]), ("the page", row[1])):
            note(step["step"], "requests", float(str(count).replace(",", "")), where)
        for k, name in enumerate(names):
            found = step["latency_us"][name]
            text = re.sub(r" [↓↑]", "", line[2 + k]).strip()
            match = re.fullmatch(rf"({TIME})(?: (\[{TIME}, {TIME}\]))?", text)
            note(step["step"], name, of_json(found, "median"), "the JSON")
            note(step["step"], name, value_of(match[1]), "the terminal")
            if several:
                # Neither end is known where no run has enough requests.
                for end, key in (("low", "lowest"), ("high", "highest")):
                    note(step["step"], f"{name} {end}", of_json(found, key) if key in found else "none", "the JSON")
                note_range(step["step"], name, match[2] if match[2] != "[-, -]" else None, "the terminal")
            if name in columns:
                page_cell(step["step"], name, row[2 + columns.index(name)], "the page")


document, terminal, dom = json.load(open(sys.argv[1])), open(sys.argv[2]).read(), open(sys.argv[3]).read()
page = re.sub(r"<script.*?</script>|<style.*?</style>", "", dom, flags=re.S)
(sweep if "points" in document else study)(document, terminal, page)
wrong = 0
for text in (terminal, shown(dom)):
    for time in otherwise_written(text):
        wrong += 1
        print(f"FAIL: a time is written in another way: {time}")
for (row, number), places in said.items():
    values = list(places.values())
    numbers = [value for value in values if not isinstance(value, str)]
    # Three digits are printed, of rates and counts the whole number: half of the last, on both sides.
    far = numbers and max(numbers) - min(numbers) > max(0.0101 * max(numbers), 1 if "rate" in number else 0)
    if far or (numbers and len(numbers) < len(values)) or (not numbers and len(set(values)) > 1):
        wrong += 1
        print(f"FAIL: {row}: {number} differs: {places}")
print(f"{len(said)} numbers, {wrong} told in two ways")
sys.exit(1 if wrong or not said else 0)
