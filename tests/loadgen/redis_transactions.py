#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# redis_transactions.py run PORT: clients whose transactions overlap, over TCP; says how many were executed.
# redis_transactions.py odd PORT: what ends without EXEC, or begins without MULTI, or is aborted.
# redis_transactions.py values PORT: what there is at the end, whatever the keys are called.
# redis_transactions.py same ONE OTHER [any-order]: whether MONITOR printed the same requests twice.
import random
import re
import socket
import sys
import time

COMMANDS = ("GET", "SET", "INCR", "LPUSH", "LPOP")


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.file = self.socket.makefile("rb")

    def say(self, *words):
        said = b"*%d\r\n" % len(words)
        said += b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(bytes_of, words))
        self.socket.sendall(said)
        return self.hear()

    def hear(self):
        line = self.file.readline()
        if line[:1] == b"$" and int(line[1:]) >= 0:
            return self.file.read(int(line[1:]) + 2)[:-2]
        if line[:1] == b"*" and int(line[1:]) >= 0:
            return [self.hear() for _ in range(int(line[1:]))]
        return line


def bytes_of(word):
    return word if isinstance(word, bytes) else str(word).encode()


def run(port):
    draw = random.Random(4)
    clients = [Client(port) for _ in range(5)]
    executed = 0
    for _ in range(200):
        one, other = draw.sample(clients, 2)
        n = draw.randrange(12)
        if draw.random() < 0.5:
            one.say("MULTI")
            one.say("LPUSH", "L%d" % n, "x" * (n + 30))
            other.say("SET", "S%d" % n, "y" * (n + 10))
            one.say("INCR", "C%d" % n)
            for _ in range(draw.randrange(3)):
                one.say("LPOP", "L%d" % n)  # of this one's: it must be there before
            one.say("GET", "S%d" % n)
            assert isinstance(one.say("EXEC"), list)
            executed += 1
        else:
            one.say("INCR", "C%d" % n)
            other.say("GET", "S%d" % n)
        time.sleep(0.001)
    print(executed)


def odd(port):
    one, other = Client(port), Client(port)
    for end in "DISCARD", "RESET":
        one.say("MULTI")
        one.say("INCR", "C0")
        one.say(end)
    one.say("EXEC")
    one.say("MULTI")
    one.say("NONSENSE")
    assert one.say("EXEC").startswith(b"-EXECABORT")
    one.say("WATCH", "S1")
    other.say("SET", "S1", "y" * 11)
    one.say("MULTI")
    one.say("INCR", "C1")
    assert one.say("EXEC").startswith(b"*-1")
    one.say("MULTI")
    assert one.say("MULTI").startswith(b"-ERR")
    one.say("EXEC")
    one.say("MULTI")
    one.say("INCR", "C1")
    other.say("SET", "S1", "y" * 11)


def values(port):
    one, found = Client(port), []
    for key in one.say("KEYS", "*"):
        if one.say("TYPE", key) == b"+list\r\n":
            found.append(("list", [len(value) for value in one.say("LRANGE", key, 0, -1)]))
        else:
            value = one.say("GET", key)
            found.append(("counter", int(value)) if key[:1] in b"Cc" else ("string", len(value)))
    for one in sorted(found):
        print(*one)


def requests(path):
    """Each with its commands, in the order in which they were executed."""
    begun, found = {}, []
    for line in open(path, encoding="utf-8", errors="replace"):
        said = re.match(r'[0-9.]+ \[\d+ (\S+)\] "(\w+)"(?: "([^"]*)")?', line)
        if not said:
            continue
        client, command, key = said[1], said[2].upper(), said[3]
        if command == "MULTI":
            begun[client] = []
        elif command in ("DISCARD", "RESET"):
            begun.pop(client, None)
        elif command == "EXEC":
            commands = begun.pop(client, None)
            if commands:
                found.append(("EXEC", commands))
        elif command in COMMANDS and client in begun:
            begun[client].append((command, key))
        elif command in COMMANDS:
            found.append((command, [(command, key)]))
    return found


def named(found, names):
    return [(kind, [(command, names.setdefault(key, len(names))) for command, key in commands])
            for kind, commands in found]


def same(one, other, any_order):
    one, other = requests(one), requests(other)
    if any_order:
        one, other = (sorted(named([request], {})[0] for request in found) for found in (one, other))
    else:
        one, other = named(one, {}), named(other, {})
    if one != other:
        first = next((i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
        sys.exit(f"{len(one)} and {len(other)} requests; {one[first:first + 1]}, then {other[first:first + 1]}")


if sys.argv[1] == "same":
    same(sys.argv[2], sys.argv[3], "any-order" in sys.argv)
else:
    {"run": run, "odd": odd, "values": values}[sys.argv[1]](int(sys.argv[2]))
