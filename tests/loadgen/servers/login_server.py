# SPDX-License-Identifier: MIT
#
# A Redis whose answer to a login depends on who comes: login_server.py PORT. Everything else gets
# a nil or, to a SET, OK.
import socket
import sys
import threading
import time

from listen import serve_each
from redis_words import words

turned = threading.Event()


def answer(connection, user):
    """True: it is logged in."""
    if user == b'closes':
        return False
    if user == b'endless':
        while True:
            connection.sendall(b'+' + b'x' * 65536)
    if user == b'dribbles':
        for byte in b'+OK\r\n':
            time.sleep(0.002)
            connection.sendall(bytes([byte]))
        return True
    if user == b'turns' and turned.is_set():
        connection.sendall(b'-WRONGPASS it was changed\r\n')
        return False
    connection.sendall({b'talks': b'+OK\r\n+OK\r\n', b'stutters': b'OK\r\n'}.get(user, b'+OK\r\n'))
    return True


def serve(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    source, user, served = connection.makefile('rb'), b'', 0
    try:
        while (command := words(source)) is not None:
            if command[0] == b'AUTH':
                user = command[1]
                if not answer(connection, user):
                    break
                continue
            served += 1
            if user == b'turns' and served > 20:
                turned.set()
                break
            connection.sendall(b'+OK\r\n' if command[0] == b'SET' else b'$200\r\n' + b'v' * 200 + b'\r\n')
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


serve_each(sys.argv[1], serve)
