# SPDX-License-Identifier: MIT
#
# What test servers in Python share: a thread for each connection, until they are killed, and lines that stay whole.
import os
import socket
import threading


def say(text):
    """Prints a line in one go: print() writes its end by itself, behind what another thread says meanwhile."""
    os.write(1, f'{text}\n'.encode())


def serve_each(port, serve):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('127.0.0.1', int(port)))
    listener.listen(64)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
