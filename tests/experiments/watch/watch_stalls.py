# SPDX-License-Identifier: MIT
#
# For test_long_watch_stalls.sh.
#   stall SEED COUNT SECONDS PID: stops a process for 0.4 s at instants that are uniform but for the
#     0.9 s that two are apart, and writes when (CLOCK_MONOTONIC_RAW, as in the records).
#   judge STALLS WINDOWS: each stall has one window, whose first cause it is; no other names one.
import json
import os
import random
import signal
import sys
import time

STALL_S, APART_S = 0.4, 0.9
ANSWERED_NS = 100_000_000


def stall(seed, count, seconds, pid):
    random.seed(seed)
    free = sorted(random.random() * (seconds - count * APART_S) for _ in range(count))
    begin, stalls = time.monotonic(), []
    for i, instant in enumerate(free):
        time.sleep(max(0, begin + instant + i * APART_S - time.monotonic()))
        stopped = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STALL_S)
        stalls.append([stopped, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)])
        os.kill(pid, signal.SIGCONT)
    json.dump(stalls, sys.stdout)


# What a stall held is answered right after it, perhaps beyond an interval's border: the first window
# of that time is the stall's, unless another stall before has that one. A busy machine has slow requests of other causes: their windows hold
# no stall, name none, and are told.
def judge(stalls, windows):
    windows.sort(key=lambda window: window["from_ns"])
    held = [0] * len(windows)
    for _, end in stalls:
        own = [i for i, w in enumerate(windows) if w["from_ns"] < end + ANSWERED_NS and end <= w["until_ns"]]
        if own:
            held[min(own, key=lambda i: held[i])] += 1
    wrong = others = 0
    for window, count in zip(windows, held):
        names_it = window["cause"].startswith("stopped by a signal") and window["max_us"] > 250000
        others += count == 0
        wrong += count > 1 or names_it != (count == 1)
        if count != 1 or not names_it:
            print(f"{count} stalls in", json.dumps(window))
    print(f"{len(stalls)} stalls, {sum(held)} in {len(windows)} windows; {others} windows of no stall, {wrong} wrong")
    return 0 if wrong == 0 and sum(held) == len(stalls) else 1


if sys.argv[1] == "stall":
    stall(*map(int, sys.argv[2:]))
else:
    with open(sys.argv[2]) as stalls_file, open(sys.argv[3]) as windows_file:
        sys.exit(judge(json.load(stalls_file), [json.loads(line) for line in windows_file]))
