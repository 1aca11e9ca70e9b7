# SPDX-License-Identifier: MIT
#
# watch_faults.py CLASS LOG SAVED BEGIN_NS END_NS ANSWERS TAILLIGHT: of the faults in the log (of
# workloads/lab/lab_fault.h) that lay between, how many have a window among the saved ones, and how
# many of these windows name it first (as score.c has its ANSWERS); and how many are none's. Where
# what one fault held up was not answered when the next began, both are in one window. 0: nineteen
# of twenty faults have a window with the right cause.
import fnmatch
import json
import pathlib
import subprocess
import sys

ANSWERED_NS = 3_000_000  # what a fault held is answered so soon after it

name, log, saved, begin, end, answers, taillight = sys.argv[1:]
with open(log, "rb") as file:
    lines = [line.split() for line in file.read().replace(b"\0", b"").decode().splitlines()]
faults = sorted((int(f[0]), int(f[1])) for f in lines if len(f) == 3 and f[2] not in ("waits", "ready"))
faults = [f for f in faults if int(begin) <= f[0] and f[1] <= int(end)]

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
    return f"{cause['cause']} ({cause['role']})"


right = shared = 0
for (from_ns, until_ns, folder), count in held.items():
    cause = first_cause(folder)
    if any(fnmatch.fnmatchcase(cause, pattern.replace("[", "[[]")) for pattern in answers.split(";")):
        right += count
        shared += count if count > 1 else 0
    else:
        print(f"    {count} in a window of {(until_ns - from_ns) / 1e6:.0f} ms that names {cause}")
print(f"{name}: {len(faults)} faults, {without} without a window, {right} with one that names it "
      f"({shared} share theirs); {len(windows) - len(held)} windows of no fault")
sys.exit(0 if len(faults) >= 15 and right >= 0.95 * len(faults) else 1)
