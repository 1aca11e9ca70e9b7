#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# A server of HTTP/2 that misbehaves, frame by frame, for the load generator's tests:
# http2_server.py PORT HOW [ADDRESS]. At its end it prints how many requests it saw, and how many of them it
# gave a whole reply.
import select
import signal
import socket
import struct
import sys
import threading

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
OK = b"\x88"
EARLY = b"\x08\x03103"  # :status
GZIP = b"\x90"  # accept-encoding: gzip, deflate
LENGTH_3 = b"\x0f\x0d\x013"  # content-length
seen = answered = 0


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def reply(stream):
    global answered
    answered += 1
    return frame(HEADERS, END_HEADERS, stream, OK) + frame(DATA, END_STREAM, stream, b"page")


def word(name, value):
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def call(stream, data=b"\0\0\0\0\4page", status=b"0", kind=b"application/grpc", words=b""):
    """Answers a call of gRPC. data: of one DATA frame, or a list, of one each. status: of the trailers; None: there are none."""
    frames = data if isinstance(data, list) else [data]
    text = frame(HEADERS, END_HEADERS, stream, OK + word(b"content-type", kind) + words)
    text += b"".join(frame(DATA, 0, stream, each) for each in frames)
    return text + (frame(DATA, END_STREAM, stream) if status is None else
                   frame(HEADERS, END_HEADERS | END_STREAM, stream, word(b"grpc-status", status)))


def good_call(stream, *words, **more):
    global answered
    answered += 1
    return call(stream, *words, **more)


class Connection:
    def __init__(self, sock):
        self.sock = sock
        self.unread = b""
        self.prefaced = False
        self.streams = 0
        self.waiting = []  # streams without a reply
        self.dead = False
        limit = struct.pack(">HI", *limits[how]) if how in limits else b""
        self.say(frame(SETTINGS, 0, 0, limit))

    def say(self, text):
        try:
            self.sock.sendall(text)
        except OSError:
            self.dead = True

    def end(self):
        self.dead = True

    def request(self, stream):
        global seen
        seen += 1
        self.streams += 1
        self.waiting.append(stream)
        last = self.streams == 100
        if how == "refuses":  # to have looked at any
            return self.streams > 1 or self.say(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)))
        if how == "windowless":
            return
        if how == "backwards":  # as soon as nothing more is there to read
            return
        if how.startswith("reset-code-") and self.streams % 7 == 0:
            self.waiting.pop()
            return self.say(frame(RESET, 0, stream, struct.pack(">I", int(how[11:]))))
        if how in changes and self.streams % 50 == 0:
            self.say(frame(SETTINGS, 0, 0, struct.pack(">HI", *changes[how][self.streams // 50 % 2])))
        if how in wrong and last:
            return self.say(wrong[how](stream))
        if how == "reset" and self.streams % 7 == 0:
            self.waiting.pop()
            return self.say(frame(RESET, 0, stream, struct.pack(">I", 7)))
        if how == "malformed" and self.streams % 9 == 0:
            self.waiting.pop()
            return self.say(frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\0\1a\1b"))
        if how == "closes" and last:
            return self.end()
        if how in ("garbage", "unasked", "angry", "fin", "goaway-in-body") and self.streams > 100:
            return
        if how == "garbage" and last:
            return self.say(b"\xff" * 100)
        if how == "unasked" and last:  # of a stream that was never begun
            return self.say(frame(HEADERS, END_HEADERS | END_STREAM, stream + 1000, OK))
        if how == "goaway" and self.streams > 95:
            if self.streams == 100:  # the last five but two it has not looked at
                self.say(frame(GOAWAY, 0, 0, struct.pack(">II", self.waiting[1], 0)))
                self.say(reply(self.waiting[1]) + reply(self.waiting[0]))
            return
        if how == "angry" and last:
            return self.say(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 11) + b"calm down"))
        if how == "deaf":  # of a body a part is to come
            return deafen()
        if how == "endless":  # a header of ever more parts
            self.waiting.clear()
            self.say(frame(HEADERS, 0, stream, OK) + 1000 * frame(CONTINUATION, 0, stream, b"\0\1a\1b"))
            return
        if how in endless:  # for as long as somebody reads it
            self.waiting.clear()
            threading.Thread(target=self.flood, args=endless[how](stream), daemon=True).start()
            return
        if how in floods:
            self.say(floods[how](stream))
        if how in instead:
            self.waiting.pop()
            return self.say(instead[how](stream))
        self.say(reply(self.waiting.pop()) + (behind[how](stream) if how in behind else b""))
        if how == "fin" and last:
            self.sock.shutdown(socket.SHUT_WR)

    def flood(self, first, text):
        self.say(first)
        text *= max(1, (1 << 20) // len(text))
        while not self.dead:
            self.say(text)

    def quiet(self):
        while how == "backwards" and self.waiting:
            self.say(reply(self.waiting.pop()))

    def take(self):
        try:
            more = self.sock.recv(65536)
        except OSError:
            more = b""
        if not more:
            return self.end()
        self.unread += more
        if not self.prefaced and len(self.unread) >= 24:
            self.unread = self.unread[24:]
            self.prefaced = True
        while self.prefaced and len(self.unread) >= 9 and not self.dead:
            size = int.from_bytes(self.unread[:3], "big")
            kind, flags, stream = struct.unpack(">BBI", self.unread[3:9])
            if len(self.unread) < 9 + size:
                break
            self.unread = self.unread[9 + size:]
            if kind == SETTINGS and not flags & ACK:
                self.say(frame(SETTINGS, ACK, 0))
            elif kind == HEADERS:
                self.request(stream)
        self.quiet()


def deafen():
    """Ends all connections, and lets the kernel answer no other: more wait to be accepted than may."""
    for each in connections.values():
        each.end()
    listener.listen(0)
    for _ in range(4):
        waiting.append(socket.socket())
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(listener.getsockname())
    accepting.clear()


def finish(*_):
    print(seen, answered, flush=True)
    sys.exit(0)


# A setting of SETTINGS: streams at once, or the window of each.
limits = {"narrow": (3, 2), "streamless": (3, 0), "windowless": (4, 0), "unread": (4, 0)}
# A setting that changes after each 50 requests, to and fro.
changes = {
    "one-stream": ((3, 1), (3, 100)),
    "no-stream": ((3, 0), (3, 100)),
    "small-window": ((4, 1), (4, 65535)),
    "small-table": ((1, 0), (1, 4096)),
    "small-frames": ((5, 16384), (5, 16777215)),
}
# Once, in place of the hundredth reply.
wrong = {
    "wrong-ping": lambda stream: frame(PING, 0, 0, b"1234567"),
    "wrong-settings": lambda stream: frame(SETTINGS, 0, 0, b"12345"),
    "wrong-reset": lambda stream: frame(RESET, 0, stream, b"123"),
    "wrong-window": lambda stream: frame(WINDOW, 0, 0, b"123"),
    "wrong-goaway": lambda stream: frame(GOAWAY, 0, 0, b"123"),
    "huge-frame": lambda stream: frame(DATA, 0, stream, 16385 * b"x"),
    "window-0": lambda stream: frame(WINDOW, 0, 0, struct.pack(">I", 0)),
    "stream-window-0": lambda stream: frame(WINDOW, 0, stream, struct.pack(">I", 0)),
    "push": lambda stream: frame(5, END_HEADERS, stream, struct.pack(">I", 2) + OK),
    "headers-of-0": lambda stream: frame(HEADERS, END_HEADERS, 0, OK),
    "settings-of-1": lambda stream: frame(SETTINGS, 0, stream),
    "lone-continuation": lambda stream: frame(CONTINUATION, END_HEADERS, stream, OK),
    "cut-headers": lambda stream: frame(HEADERS, 0, stream, OK) + frame(PING, 0, 0, b"12345678"),
    "large-window": lambda stream: frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0x80000000)),
    "goaway-in-body": lambda stream: frame(HEADERS, END_HEADERS, stream, OK) + frame(DATA, 0, stream, b"pa") +
    frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)),
}
# What is said in front of each reply, in its place, and behind it.
floods = {
    "settings": lambda stream: 3000 * frame(SETTINGS, 0, 0),
    "pings": lambda stream: 3000 * frame(PING, 0, 0, b"12345678"),
    "early": lambda stream: 300 * frame(HEADERS, END_HEADERS, stream, EARLY),
    "windows": lambda stream: frame(WINDOW, 0, 0, struct.pack(">I", 0x7fffffff)),
    "goaways": lambda stream: 300 * frame(GOAWAY, 0, 0, struct.pack(">II", 0x7fffffff, 0)),
}
endless = {
    "endless-headers": lambda stream: (b"", frame(HEADERS, END_HEADERS, stream, EARLY + 16000 * GZIP)),
    "endless-continuations": lambda stream: (frame(HEADERS, 0, stream, OK), frame(CONTINUATION, 0, stream, 16000 * GZIP)),
    "endless-early": lambda stream: (b"", frame(HEADERS, END_HEADERS, stream, EARLY)),
    "endless-settings": lambda stream: (b"", frame(SETTINGS, 0, 0)),
    "endless-acks": lambda stream: (b"", frame(SETTINGS, ACK, 0)),
    "endless-pings": lambda stream: (b"", frame(PING, 0, 0, b"12345678")),
    "endless-pongs": lambda stream: (b"", frame(PING, ACK, 0, b"12345678")),
    "endless-windows": lambda stream: (b"", frame(WINDOW, 0, stream + 2, struct.pack(">I", 1))),
    "endless-data": lambda stream: (frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, 0, stream)),
    "endless-priorities": lambda stream: (b"", frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 1))),
    "endless-unknown": lambda stream: (b"", frame(99, 0, 0)),
    "endless-resets": lambda stream: (b"", frame(RESET, 0, stream, struct.pack(">I", 7))),
    "endless-goaways": lambda stream: (b"", frame(GOAWAY, 0, 0, struct.pack(">II", 0x7fffffff, 0))),
    "endless-body": lambda stream: (frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, 0, stream, 16384 * b"x")),
}
instead = {
    "resets": lambda stream: 3 * frame(RESET, 0, stream, struct.pack(">I", 2)),
    "half": lambda stream: frame(HEADERS, END_HEADERS, stream, OK) + frame(DATA, 0, stream, b"pa"),
    "size": lambda stream: frame(HEADERS, END_HEADERS, stream, OK + LENGTH_3) + frame(DATA, END_STREAM, stream, b"page"),
}
instead.update({
    "call": good_call,
    "call-bytewise": lambda stream: good_call(stream, [bytes([each]) for each in b"\0\0\0\0\4page"]),
    "call-and-reset": lambda stream: good_call(stream) + frame(RESET, 0, stream, struct.pack(">I", 0)),
    "call-reset": lambda stream: frame(HEADERS, END_HEADERS, stream, OK) + frame(DATA, 0, stream, b"\0\0\0\0\4pa") +
    frame(RESET, 0, stream, struct.pack(">I", 2)),
    "call-refused": lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream,
                                         OK + word(b"grpc-status", b"8") + word(b"grpc-message", b"no%20room: 100%25")),
    "call-compressed": lambda stream: call(stream, b"\1\0\0\0\4page", words=word(b"grpc-encoding", b"gzip")),
    "call-flagged": lambda stream: call(stream, b"\x7e\0\0\0\4page"),
    "call-two": lambda stream: call(stream, 2 * b"\0\0\0\0\4page"),
    "call-short": lambda stream: call(stream, b"\0\0\0\0\4pag"),
    "call-long": lambda stream: call(stream, b"\0\xff\xff\xff\xffpage"),
    "call-untold": lambda stream: call(stream, status=b""),
    "call-empty": lambda stream: call(stream, b""),
    "call-untrailed": lambda stream: call(stream, status=None),
    "call-garbled": lambda stream: call(stream, status=b"banana"),
    "call-beyond": lambda stream: call(stream, status=b"99999999999999999999"),
    "call-unknown": lambda stream: call(stream, status=b"77"),
    "call-html": lambda stream: call(stream, b"<html>", None, b"text/html"),
    "call-html-trailed": lambda stream: call(stream, kind=b"text/html"),
})
behind = {
    "twice": lambda stream: frame(HEADERS, END_HEADERS, stream, OK) + frame(DATA, END_STREAM, stream, b"page"),
    "more": lambda stream: frame(DATA, END_STREAM, stream, b"page"),
    "reset-behind": lambda stream: frame(RESET, 0, stream, struct.pack(">I", 2)),
}
how = sys.argv[2]
signal.signal(signal.SIGTERM, finish)
listener = socket.create_server((sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1", int(sys.argv[1])), backlog=64)
connections = {}
accepting, waiting = [listener], []
while True:
    for sock in [sock for sock, each in connections.items() if each.dead]:
        del connections[sock]
        sock.close()
    for ready in select.select([*accepting, *connections], [], [])[0]:
        if ready is listener:
            sock = listener.accept()[0]
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections[sock] = Connection(sock)
            continue
        connections[ready].take()
