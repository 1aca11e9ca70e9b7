# SPDX-License-Identifier: MIT
#
# A memcached with SASL whose answer to a login depends on who comes: sasl_server.py PORT. Who comes as
# NAME-later is let in, served 20 requests, and then meets what NAME meets.
import socket
import struct
import sys

from listen import serve_each

HEADER = '>BBHBBHIIQ'
REQUEST, REPLY, GET, SASL_AUTH, FURTHER_STEP = 0x80, 0x81, 0, 0x21, 0x21
turned = set()


def reply(opcode, number, body=b'', magic=REPLY, extras=0, status=0):
    return struct.pack(HEADER, magic, opcode, 0, extras, 0, status, len(body), number, 0) + body


def login(user, number):
    """What is answered, and whether the user is in."""
    good = reply(SASL_AUTH, number, b'Authenticated')
    if user.endswith(b'-later') and user not in turned:
        return good, True
    return {
        b'garbage': (bytes(range(200)), False),
        b'request': (reply(SASL_AUTH, number, b'Authenticated', magic=REQUEST), False),
        b'other': (reply(GET, number, b'\0\0\0\0value', extras=4), False),
        b'half': (good[:11], False),
        b'headless': (good[:24], False),
        b'closes': (b'', False),
        b'further': (reply(SASL_AUTH, number, b'a challenge', status=FURTHER_STEP), False),
        b'twice': (good + good, True),
    }.get(user.removesuffix(b'-later'), (good, True))


def message(source):
    """Of a request: opcode, number and body; None when there are no more."""
    header = source.read(24)
    if len(header) < 24:
        return None
    _, opcode, _, _, _, _, size, number, _ = struct.unpack(HEADER, header)
    return opcode, number, source.read(size)


def serve(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    source, user, served = connection.makefile('rb'), b'', 0
    try:
        while (request := message(source)) is not None:
            opcode, number, body = request
            if opcode == SASL_AUTH:
                user = body.split(b'\0')[1]
                answer, accepted = login(user, number)
                connection.sendall(answer)
                if not accepted:
                    break
                continue
            connection.sendall(reply(opcode, number, b'\0\0\0\0' + b'v' * 200, extras=4) if opcode == GET else
                               reply(opcode, number))
            served += 1
            if user.endswith(b'-later') and served > 20:
                turned.add(user)
                break
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


serve_each(sys.argv[1], serve)
