#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stands in for `ssh` in front of a machine that means harm: takes what it is sent, and answers as
HOSTILE says. The first connection of a run has the program's bytes on its input, and is to be a
keeper's; a later one is that of a program there. Sourced by no one; found in PATH as `ssh`."""
import errno
import json
import os
import random
import struct
import sys
import threading
import time

how = os.environ["HOSTILE"]
first = any(word == "ControlMaster=yes" for word in sys.argv)
out = sys.stdout.buffer


def say(raw):
    out.write(raw)
    out.flush()


def frame(kind, body):
    return struct.pack("<I", len(body)) + kind + body


def message(**what):
    say(frame(b"J", json.dumps(what).encode()))


def printed(raw, stream=1):
    say(frame(b"B", bytes([stream]) + raw))


def answer(text=b"", number=0):
    printed(struct.pack("<i", number) + text[:512].ljust(512, b"\0"))


def facts(**other):
    says = dict(uid=0, cores="0-63", address="10.1.2.3", directory="/tmp/taillight-0-X", boot_id="b",
                kernel="6", stale_journals=0)
    says.update(other)
    return json.dumps(says).encode()


def keeper(facts_text=facts(), clock=b"1000000000"):
    """Ready, what it is, its clock, what earlier runs left; then whatever is asked is done."""
    say(frame(b"J", b"{}"))
    answer()
    answer(facts_text)
    for _ in range(16):
        answer(clock)
    answer(number=errno.ENOENT)  # nothing was left there
    for _ in range(200):
        answer()


def linger():
    time.sleep(20)  # the near end kills its ssh long before


def take_program():
    """The program, and what comes with it: a line that says how many blocks, and those."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    left = int(line.split()[2]) * 65536
    while left > 0:
        left -= len(os.read(0, min(left, 1 << 16)))


def drain():
    """Takes all other input, so that nobody waits for it. Its end is the link's."""
    while os.read(0, 1 << 16):
        pass
    os._exit(0)


if how != "list":
    if first:
        take_program()
    threading.Thread(target=drain, daemon=True).start()
random.seed(14)
ways = {
    "garbage": lambda: say(random.randbytes(100000)),
    "text": lambda: say(b"Welcome to far!\n" * 4000),
    "half a head": lambda: say(b"\x10\0"),
    "half a frame": lambda: say(struct.pack("<I", 1000) + b"J{"),
    "endless frame": lambda: say(struct.pack("<I", 0xFFFFFFFF) + b"J" + b" " * 100000),
    "no object": lambda: say(frame(b"J", b"[1]")),
    "deep": lambda: say(frame(b"J", b'{"a":' * 100000 + b"1")),
    "not utf-8": lambda: say(frame(b"J", b'{"type": "\xff\xfe"}')),
    "unknown type": lambda: message(type="A" * 100000),
    "type is a number": lambda: message(type=3) or linger(),
    "failed with escapes": lambda: message(type="failed", text="\x1b]0;owned\x07\x1b[2J\r\n"),
    "failed at length": lambda: message(type="failed", text="%s%n" * 100000),
    "no status": lambda: message(type="ended"),
    "status of a stop": lambda: message(type="ended", status=0x13),
    "status beyond": lambda: message(type="ended", status=2**62),
    "bytes of nothing": lambda: say(frame(b"B", b"")),
    "unknown stream": lambda: printed(b"x" * 1000, 0x55),
    "no zstd": lambda: printed(b"not zstd" * 100, 0x81),
    # a frame whose blocks each stand for 128 KiB of zeros
    "zstd bomb": lambda: printed(b"\x28\xb5\x2f\xfd\0\x78" + b"\x02\0\x10\0" * 200000, 0x81),
    "text without end": lambda: answer(b"A" * 512),
    "number beyond": lambda: answer(number=-77),
    "half an answer": lambda: printed(b"\0" * 100) or message(type="ended", status=0),
    "facts without end": lambda: keeper(b"{" * 512),
    "facts are none": lambda: keeper(b"null"),
    "address of elsewhere": lambda: keeper(facts(address="-oProxyCommand=x")),
    "directory of elsewhere": lambda: keeper(facts(directory="/tmp/taillight-0-X;reboot")),
    "cores beyond": lambda: keeper(facts(cores="0-99999999999")),
    "clock without end": lambda: keeper(clock=b"1" * 512),
    "clock of words": lambda: keeper(clock=b"noon"),
    "clock beyond": lambda: keeper(clock=b"-9223372036854775808"),
    "endless complaints": lambda: [os.write(2, b"warning: \x1b[2J\n" * 65536) for _ in range(100)],
    "endless stderr": lambda: [printed(b"noise\n" * 20000, 2) for _ in range(1000)],
    "nothing": linger,
    "silence after a while": lambda: say(frame(b"J", b"{}")) or linger(),
}
# What a program there does, after a keeper that behaves.
programs = {
    "program prints escapes": lambda: printed(b"\x1b]0;owned\x07", 2) or message(type="ended", status=256),
    "program ends with a stop": lambda: message(type="ended", status=0x13),
    "program ends unseen": lambda: None,
}
# Those that say nothing that is wrong: the link is down, or the host gives its own reason. All others
# are not the machine that was meant.
down = {"half a head", "half a frame", "type is a number", "failed with escapes", "failed at length",
        "endless complaints", "endless stderr", "nothing", "silence after a while",
        "program prints escapes", "program ends unseen"}
if how == "list":
    for name in [*ways, *programs]:
        print(1 if name in down else 2, name)
    sys.exit()
try:
    if how not in programs:
        ways[how]()
    elif first:
        keeper()
        linger()
    else:
        say(frame(b"J", b"{}"))
        programs[how]()
    time.sleep(1)  # who is asked something still may answer, and does not
except BrokenPipeError:
    pass
os._exit(0)
