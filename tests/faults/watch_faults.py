# SPDX-License-Identifier: MIT
#
# watch_faults.py CLASS LOG SAVED LOAD SECONDS ANSWERS TAILLIGHT: of the faults in the log (of
# workloads/lab/lab_fault.h) that lay in the load's time, how many have a window among the saved
# ones, and how many of these windows name it first (as score.c has its ANSWERS). Where what one
# fault held up was not answered when the next began, both are in one window. What the windows of
# that time name that hold no fault is told. 0: nineteen of twenty faults have a window with the
# right cause.
#
# When the load was there it says itself, by its --announce: beside programs that want the cores,
# a clock that is read before and after it may have been read much later, and a server that goes on
# to misbehave holds nobody up.
import collections
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import time

ANSWERED_NS = 3_000_000  # what a fault held is answered so soon after it
BORDER_NS = 500_000_000  # of the load's time: its connections and its last requests

name, log, saved, load, seconds, answers, taillight = sys.argv[1:]
with open(load) as file:
    monotonic = json.loads(file.readline())["begin_ns"]
# The log and the windows have CLOCK_MONOTONIC_RAW, which drifts from it by microseconds meanwhile.
begin = monotonic + time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - time.monotonic_ns() + BORDER_NS
end = begin + int(seconds) * 1_000_000_000 - 2 * BORDER_NS
with open(log, "rb") as file:
    lines = [line.split() for line in file.read().replace(b"\0", b"").decode().splitlines()]
faults = sorted((int(f[0]), int(f[1])) for f in lines if len(f) == 3 and f[2] not in ("waits", "ready"))
faults = [f for f in faults if begin <= f[0] and f[1] <= end]

windows = []
for folder in sorted(pathlib.Path(saved).iterdir()):
    segments = json.loads((folder / "capture.json").read_text())["segments"]
    windows.append((segments["from_ns"], segments["until_ns"], folder))
windows.sort()

held, without = {}, 0
for _, fault_end in faults:
    own = [w for w in windows if w[0] < fault_end + ANSWERED_NS and fault_end <= w[1]]
    if own:
        first = min(own, key=lambda w: held.get(w, 0))  # answered beyond the border of one that another has
        held[first] = held.get(first, 0) + 1
    else:
        without += 1


def first_cause(folder):
    told = subprocess.run([taillight, "analyze", folder, "--quiet", "--json"], capture_output=True, text=True)
    if told.returncode not in (0, 4):
        sys.exit(f"{name}: {folder} cannot be analyzed: {told.stderr}")
    run = json.loads(told.stdout)
    cause = run["causes"][0] if run["causes"] else {"cause": "none: " + run["verdict"], "role": "A"}
    words = f"{cause['cause']} ({cause['role']})"
    most = re.match(r"(.*?) (\d+) %", cause.get("parts", ""))
    return f"{words}, most of it {most[1]}" if most and int(most[2]) >= 50 else words


def is_right(cause):
    return any(fnmatch.fnmatchcase(words, pattern.replace("[", "[[]"))
               for pattern in answers.split(";") for words in (cause, cause.split(", most of it ")[0]))


right = shared = 0
for (from_ns, until_ns, folder), count in held.items():
    cause = first_cause(folder)
    if is_right(cause):
        right += count
        shared += count if count > 1 else 0
    else:
        print(f"    {count} in a window of {(until_ns - from_ns) / 1e6:.0f} ms that names {cause}")
others = [w for w in windows if w not in held and begin <= w[0] and w[1] <= end]
print(f"{name}: {len(faults)} faults, {without} without a window, {right} with one that names it "
      f"({shared} share theirs); {len(others)} windows of no fault")
for cause, count in collections.Counter(first_cause(w[2]) for w in others).most_common():
    print(f"    {count} name {cause}")
sys.exit(0 if len(faults) >= 15 and right >= 0.95 * len(faults) else 1)
