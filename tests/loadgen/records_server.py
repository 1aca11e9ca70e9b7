#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# A memcached over TLS that leaves what memcached 1.6.18 may leave unread: where a record with more than one command
# is longer than its buffer, or ends within a command, it answers nothing more. When the client has gone it has written
# how many records with sets came. After SILENT sets, if that is given and not 0, it answers nothing more either. With
# LOGIN each connection is to log in first, by a set of that value, which is answered in any case (memcached -Y).
#
# usage: records_server.py PORT CERTIFICATE KEY FILE [SILENT [LOGIN]]
import socket
import ssl
import sys

BUFFER_BYTES = 16384
silent = int(sys.argv[5]) if len(sys.argv) > 5 and sys.argv[5] != "0" else None
login = sys.argv[6].encode() if len(sys.argv) > 6 else None
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
stored, records, sets = {}, 0, 0


def commands(text):
    """The whole commands in it, each its words and value, and the rest."""
    found = []
    while b"\r\n" in text:
        line, rest = text.split(b"\r\n", 1)
        words, value = line.split(), None
        if words and words[0] == b"set":
            count = int(words[4])
            if len(rest) < count + 2:
                break
            value, rest = rest[:count], rest[count + 2:]
        found.append((words, value))
        text = rest
    return found, text


def answer(words, value, welcome):
    if not welcome:
        return b"STORED\r\n" if value == login else b"CLIENT_ERROR authentication failure\r\n" if value else b"CLIENT_ERROR unauthenticated\r\n"
    if words[0] == b"set":
        stored[words[1]] = value
        return b"" if words[-1] == b"noreply" else b"STORED\r\n"
    if words[0] in (b"get", b"gets"):
        return b"".join(b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(stored[key]), stored[key]) for key in words[1:] if key in stored) + b"END\r\n"
    return b"VERSION 1.6.18\r\n" if words[0] == b"version" else b"ERROR\r\n"


def serve(client):
    global records, sets
    text, mute, welcome = b"", False, login is None
    while record := client.recv(BUFFER_BYTES * 4):
        found, text = commands(text + record)
        these = sum(value is not None for _, value in found)
        records += b"set " in record
        sets += these
        mute = mute or ((text or len(record) > BUFFER_BYTES) and len(found) > 1) or (silent is not None and sets >= silent)
        if not mute:
            for words, value in found:
                client.sendall(answer(words, value, welcome))
                welcome = welcome or value == login


while True:
    try:
        plain, _ = listener.accept()
        with context.wrap_socket(plain, server_side=True) as client:
            serve(client)
    except OSError:
        pass
    with open(sys.argv[4], "w") as log:
        print(records, sets, file=log)
