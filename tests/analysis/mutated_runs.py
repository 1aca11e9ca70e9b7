# SPDX-License-Identifier: MIT
"""Changes each file of a run's folder in each of the ways below, and has the folder read
(test_trust_mutated_runs.sh). damaged_runs.py draws its damage; here it is what disks, copies and
people do to files, so that more can be asked: besides an end in time and without a signal,

- exit 2, with a message that names the file (or the folder it is missing from) and says what to do;
- exit 0, 3 or 4, with the same results as those of the whole folder, or with words about it that
  the whole folder's have not. (Another value in a JSON document may be as good as the first.)

usage: mutated_runs.py RUN WORK TAILLIGHT WHAT [PATTERN]
WHAT: quick, a few of each kind, or all. PATTERN: only mutations whose names match.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

RUN, WORK, PROGRAM, WHAT = sys.argv[1:5]
PATTERN = re.compile(sys.argv[5] if len(sys.argv) > 5 else "")
PATIENCE_S = 60
HEADER_BYTES, RECORDS_AT, RECORD_BYTES_AT = 128, 24, 20  # base/log_file.h
RESULTS = ("summary.json", "report.html", "run.db")


# --- mutations: functions of a path ---------------------------------------------------------------


def missing(path):
    os.remove(path)


def empty(path):
    os.truncate(path, 0)


def half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def last_byte(path):
    os.truncate(path, os.path.getsize(path) - 1)


def fifo(path):
    os.remove(path)
    os.mkfifo(path)


def folder(path):
    os.remove(path)
    os.mkdir(path)


def link_to_itself(path):
    os.remove(path)
    os.symlink(os.path.basename(path), path)


def link_to_nothing(path):
    os.remove(path)
    os.symlink("/nonexistent/file", path)


def link_to_device(path):
    os.remove(path)
    os.symlink("/dev/zero", path)


def flipped(path):
    """The first byte, so that it cannot go unseen."""
    with open(path, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 0x80]))


def blank(path):
    size = os.path.getsize(path)
    with open(path, "wb") as file:
        file.truncate(size)


def word(at, layout, value):
    def change(path):
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(struct.pack(layout, value))

    change.__name__ = f"{'records' if at == RECORDS_AT else 'record_bytes'}={value}"
    return change


def huge(path):
    """Terabytes by its length, and by its header; a hole takes no room on the disk."""
    records = 1 << 35
    with open(path, "r+b") as file:
        file.seek(RECORD_BYTES_AT)
        (record_bytes,) = struct.unpack("<I", file.read(4))
        file.write(struct.pack("<Q", records))
    os.truncate(path, HEADER_BYTES + records * record_bytes)


def whole(value):
    def change(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(value)

    change.__name__ = f"is {value[:20]!r}"
    return change


def member(keys, value):
    """Another value at a place of a JSON document."""

    def change(path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        at = document
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)

    change.another_value = True
    change.__name__ = f"{'.'.join(map(str, keys))} is {json.dumps(value)[:20]}"
    return change


def places(document, depth):
    """Of every member; of lists the first."""
    if depth == 0:
        return
    if isinstance(document, dict):
        children = document.items()
    elif isinstance(document, list):
        children = enumerate(document[:1])
    else:
        return
    for key, child in children:
        yield [key]
        for rest in places(child, depth - 1):
            yield [key] + rest


# --- which of them a file gets --------------------------------------------------------------------

ANY = [missing, empty, half, last_byte, fifo, folder, link_to_itself, link_to_nothing, link_to_device, flipped, blank]
LOG = [word(RECORDS_AT, "<Q", n) for n in (0, 1 << 40, (1 << 64) - 1)] + [
    word(RECORD_BYTES_AT, "<I", n) for n in (0, (1 << 32) - 1)] + [huge]
GONE = (missing, link_to_itself, link_to_nothing)  # the file has to be named, in the results, too
WHOLE = [whole(text) for text in ("[]", "null", "7", '"x"', "{}", "[" * 100000, '{"a": 1, "a": 2}')]
MEND = re.compile(r"copy|take |run |analyze|remove|cannot read")
MEMBERS = 60  # of each document
TYPES = (None, [], {}, "x", -1, 1e300, (1 << 63) - 1, True)


def mutations():
    """(file, name, function)."""
    files = sorted(os.path.relpath(os.path.join(at, name), RUN) for at, _, names in os.walk(RUN) for name in names)
    for file in files:
        if file in RESULTS:
            many = [folder, link_to_nothing, fifo]
        else:
            cuts = (empty, half, last_byte, flipped, blank)
            many = [one for one in ANY if os.path.getsize(os.path.join(RUN, file)) or one not in cuts]
        if file.endswith(".tlog"):
            many += LOG
        if file.endswith(".json") and file not in RESULTS:
            many += WHOLE
            with open(os.path.join(RUN, file), encoding="utf-8") as opened:
                document = json.load(opened)
            members = [member(keys, value) for keys in places(document, 4) for value in TYPES]
            many += members[:: max(1, len(members) // MEMBERS)]
        for change in many:
            yield file, change.__name__, change


QUICK = re.compile(
    r"^(server/events\.tlog: (missing|fifo|half|huge)|client/samples\.tlog: (missing|link_to_device|records=0)|"
    r"server/calls\.tlog: (missing|last_byte)|server/clock\.tlog: (link_to_nothing|blank)|server/sockets\.tlog: missing|"
    r"server/capture\.json: (missing|is '\[\]'|segments\.count is .*|events is \[\])|client/load\.json: (half|is 'null')|"
    r"client-batch/load\.json: missing|server/hops\.tlog: missing|"
    r"summary\.json: folder|run\.db: fifo)$")


# --- what is asked --------------------------------------------------------------------------------


def end(arguments):
    """(exit, stdout, stderr); exit None: it did not end."""
    try:
        done = subprocess.run([PROGRAM] + arguments, capture_output=True, timeout=PATIENCE_S, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, "", ""
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def words_of(text):
    return set(re.split(r"(?<=[.;:])\s+|\n", text))


def plain(summary):
    """What is the same of two analyses of the same data."""
    return {key: value for key, value in summary.items() if key not in ("run_dir",)}


class Reader:
    """One command, what it may end with, and what it says of the whole folder."""

    def __init__(self, name, arguments, allowed):
        self.name, self.arguments, self.allowed = name, arguments, allowed
        self.status, self.out, self.err = end(arguments(RUN))
        if self.status not in allowed:
            sys.exit(f"FAIL: {name} of the whole folder: exit {self.status}: {self.err}")

    def wrong(self, copy, file, gone, may_differ):
        begun = time.monotonic()
        status, out, err = end(self.arguments(copy))
        took = time.monotonic() - begun
        if status is None:
            return f"does not end within {PATIENCE_S} s"
        if "AddressSanitizer" in err or "runtime error:" in err:
            return f"a sanitizer's finding: {err[:1500]}"
        if status not in self.allowed + (2,):
            return f"exit {status} after {took:.1f} s: {err[-300:]}"
        if os.environ.get("SHOW"):
            print(f"    {self.name}: {status} {took:.1f} s: {err.strip()[-400:]}")
        if status == 2:
            message = err.strip().split("taillight: ")[-1]
            names = os.path.basename(file) in message or (copy in message)
            return None if names and MEND.search(message) else f"exit 2 without the file and a mend: {message}"
        return None if may_differ else self.mistaken(copy, file, gone, out, err)

    def mistaken(self, copy, file, gone, out, err):
        """Other results, and no word about it."""
        same = out.replace(copy, RUN) == self.out
        if self.name == "analyze" and not same:
            mine, theirs = plain(json.loads(self.out)), plain(json.loads(out))
            if mine == theirs:
                return None
            said = words_of(theirs["verdict"] + "\n" + err) - words_of(mine["verdict"] + "\n" + self.err)
            differ = [key for key in mine if mine.get(key) != theirs.get(key)]
            if not said or (gone and os.path.basename(file) not in " ".join(said)):
                return f"other results without a word about {file}: {', '.join(differ)}"
            if os.environ.get("SHOW"):
                print(f"      said: {said}; differ: {differ}")
        return None


def main():
    history = os.path.join(WORK, "history.db")

    def taken_up(folder_):
        if os.path.exists(history):
            os.remove(history)
        return ["history", "add", folder_, "--db", history, "--quiet"]

    readers = [
        Reader("analyze", lambda at: ["analyze", at, "--json", "--quiet"], (0, 4)),
        Reader("report", lambda at: ["report", at, "--quiet"], (0, 4)),
        Reader("compare", lambda at: ["compare", RUN, at, "--quiet"], (0, 3, 4)),
        Reader("history", taken_up, (0, 4)),
    ]
    failures, count = 0, 0
    for file, name, change in mutations():
        title = f"{file}: {name}"
        if not PATTERN.search(title) or (WHAT == "quick" and not QUICK.match(title)):
            continue
        if os.environ.get("SHOW"):
            print(title, flush=True)
        # All read by the same code, most of it; each mutation by one of them.
        for reader in [readers[count % len(readers)]]:
            copy = os.path.join(WORK, "copy")
            subprocess.run(["cp", "-r", "--reflink=auto", RUN, copy], check=True)
            change(os.path.join(copy, file))
            wrong = reader.wrong(copy, file, change in GONE, hasattr(change, "another_value"))
            shutil.rmtree(copy)
            if wrong:
                failures += 1
                print(f"FAIL: {title}: {reader.name}: {wrong}", flush=True)
        count += 1
    print(f"{count} mutations of {RUN}, {failures} of them not told well")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
