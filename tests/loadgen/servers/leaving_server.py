#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# HTTP/2 behind TLS that says GOAWAY in one breath with leave to send more of a body:
# leaving_server.py PORT CERTIFICATE KEY. Of each connection it prints how its bytes end: "whole",
# "cut off", or why TLS does not take them.
import socket
import ssl
import struct
import sys

from listen import say, serve_each

SETTINGS, GOAWAY, WINDOW = 4, 7, 8
WINDOW_BYTES = 65535  # as it is at the begin (RFC 9113, 6.9.2)


def frame(kind, payload, stream=0):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, 0, stream) + payload


def serve(tls):
    tls.sendall(frame(SETTINGS, b""))
    come = 0
    while come < WINDOW_BYTES:
        come += len(tls.recv(16384))
    room = struct.pack(">I", WINDOW_BYTES)
    tls.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    tls.sendall(frame(WINDOW, room) + frame(WINDOW, room, 1))
    tls.sendall(frame(GOAWAY, struct.pack(">II", 0x7fffffff, 0)))
    tls.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    while tls.recv(16384):
        pass


def take(sock):
    try:
        with context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False) as tls:
            serve(tls)
            say("whole")
    except ssl.SSLError as error:  # which of its kinds a cut is depends on the Python
        cut = isinstance(error, ssl.SSLEOFError) or error.reason == "UNEXPECTED_EOF_WHILE_READING"
        say("cut off" if cut else error)
    except OSError:
        pass  # nobody said anything


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[2:])
context.set_alpn_protocols(["h2"])
context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # some Pythons have it set
serve_each(sys.argv[1], take)
