# SPDX-License-Identifier: MIT
"""An HTTP server that is made to collect garbage: the request during which it is due suffers it.

    collecting_server.py PORT OBJECTS EVERY_MS LOG

CPython goes through so many OBJECTS that live on in its only thread. LOG is a fault log
(workloads/lab/lab_fault.h).
"""
import gc
import selectors
import socket
import sys
import time

port, objects, every_ms = map(int, sys.argv[1:4])
log = open(sys.argv[4], "w", buffering=1)
alive = [[i] for i in range(objects)]
reply = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n" + 200 * b"x"


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


gc.disable()
gc.collect()
listener = socket.create_server(("", port))
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
due_ns = 0  # not before it has clients
while True:
    for key, _ in selector.select():
        client = key.fileobj
        if client is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ)
            due_ns = due_ns or now_ns()
            continue
        if not client.recv(65536):
            selector.unregister(client)
            client.close()
            continue
        begin_ns = now_ns()
        if begin_ns >= due_ns:
            gc.collect()
            log.write(f"{begin_ns} {now_ns()} collection\n")
            due_ns = begin_ns + every_ms * 1000000
        client.send(reply)
