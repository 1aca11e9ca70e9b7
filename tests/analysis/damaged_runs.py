# SPDX-License-Identifier: MIT
"""Damages copies of a run's folder and has them read (test_long_trust_damaged_runs.sh).

`analyze`, `report` and `compare` of a damaged folder end with 0, 2 or 4 (compare also 3: a
difference), never by a signal, in time, and with a word where they do not succeed. The damage is
drawn from a seed, which a failure names.

usage: damaged_runs.py RUN WORK SECONDS SEED TAILLIGHT...
"""
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import time

RUN, WORK, SECONDS, SEED, PROGRAMS = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
PATIENCE_S = 120
FILES = sorted(
    os.path.relpath(os.path.join(place, name), RUN)
    for place, _, names in os.walk(RUN)
    for name in names
    if name not in ("report.html", "run.db") and not os.path.islink(os.path.join(place, name))
)


def truncate(chance, path, _):
    size = os.path.getsize(path)
    os.truncate(path, chance.choice([0, 1, 64, 128, size // 2, max(0, size - 1), chance.randrange(size + 1)]))


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def place_in(chance, path):
    """Often in a header, or in the first records."""
    size = max(1, os.path.getsize(path))
    return chance.randrange(min(size, chance.choice([32, 128, 1024, size])))


def flip(chance, path, _):
    for _ in range(chance.choice([1, 1, 3, 20, 200])):
        at = place_in(chance, path)
        with open(path, "rb") as file:
            file.seek(at)
            old = file.read(1) or b"\0"
        overwrite(path, at, bytes([old[0] ^ 1 << chance.randrange(8)]))


def number(chance, path, _):
    """A word becomes a number that breaks sums and sizes."""
    value = chance.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, chance.getrandbits(64)])
    overwrite(path, place_in(chance, path) & ~7, value.to_bytes(8, "little"))


def blank(chance, path, _):
    overwrite(path, place_in(chance, path), bytes(chance.choice([1, 64, 4096])))


def append(chance, path, _):
    with open(path, "ab") as file:
        file.write(chance.randbytes(chance.choice([1, 63, 64, 10000])))


def swap(chance, path, other):
    os.rename(path, path + ".x")
    os.rename(other, path)
    os.rename(path + ".x", other)


def copy_over(chance, path, other):
    shutil.copyfile(other, path)


def cut_out(chance, path, _):
    with open(path, "rb") as file:
        data = file.read()
    at, count = place_in(chance, path), chance.choice([1, 8, 64, 1000])
    with open(path, "wb") as file:
        file.write(data[:at] + data[at + count :])


def text(chance, path, _):
    """Another value in a text; binary files just get the bytes."""
    with open(path, "rb") as file:
        data = file.read()
    places = [m.span() for m in re.finditer(rb"-?\d+(\.\d+)?|null|true|\"[a-z_]+\"|[\[\]{}]", data[:200000])]
    if not places:
        return
    begin, end = chance.choice(places)
    new = chance.choice([b"", b"-1", b"1e400", b"9" * 40, b"null", b'""', b"{}", b"[]", b'"' + b"x" * 5000 + b'"'])
    with open(path, "wb") as file:
        file.write(data[:begin] + new + data[end:])


def remove(chance, path, _):
    os.remove(path)


def folder(chance, path, _):
    os.remove(path)
    os.mkdir(path)


DAMAGES = [truncate, truncate, flip, flip, number, number, blank, append, swap, copy_over, cut_out, text, text, text,
           remove, folder]


def run(program, command, seed):
    begun = time.monotonic()
    try:
        result = subprocess.run([program] + command, capture_output=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"does not end within {PATIENCE_S} s"
    said = result.stderr.decode(errors="replace")
    allowed = (0, 2, 3, 4) if command[0] == "compare" else (0, 2, 4)
    if "AddressSanitizer" in said or "runtime error:" in said:
        return "a sanitizer's finding: " + said[:1500]
    if result.returncode not in allowed:
        return f"exit {result.returncode} after {time.monotonic() - begun:.1f} s: {said[-300:]}"
    if result.returncode and not said.strip() and not result.stdout.strip():
        return f"exit {result.returncode} without a word"
    return None


def trial(seed):
    chance = random.Random(seed)
    copy = f"{WORK}/{seed}"
    shutil.copytree(RUN, copy, symlinks=True)
    done = []
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        damage, (name, other) = chance.choice(DAMAGES), chance.sample(FILES, 2)
        if os.path.isfile(f"{copy}/{name}") and os.path.isfile(f"{copy}/{other}"):
            damage(chance, f"{copy}/{name}", f"{copy}/{other}")
            done.append(f"{damage.__name__} {name}" + (f" {other}" if damage in (swap, copy_over) else ""))
    command = chance.choice([["analyze", copy], ["analyze", copy], ["report", copy], ["compare", RUN, copy]])
    program = chance.choice(PROGRAMS)
    wrong = run(program, command, seed)
    shutil.rmtree(copy)
    return wrong and f"seed {seed}: {command[0]} after {', '.join(done)} ({program}): {wrong}"


def main():
    trials, failures = 0, []
    end = time.monotonic() + SECONDS
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        seeds = iter(range(SEED, SEED + 10**6))
        running = {pool.submit(trial, next(seeds)) for _ in range(os.cpu_count())}
        while running:
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in done:
                trials += 1
                if one.result():
                    failures.append(one.result())
                    print(f"FAIL: {one.result()}", flush=True)
                if time.monotonic() < end and len(failures) < 20:
                    running.add(pool.submit(trial, next(seeds)))
    print(f"{trials} damaged folders from seed {SEED} on, {len(failures)} of them not told well")
    return 1 if failures else 0


sys.exit(main())
