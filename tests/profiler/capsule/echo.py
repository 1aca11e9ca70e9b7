#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Datagrams and streams there and back, and whether they are what they were.
#
#   echo.py serve PORT                  echoes on UDP and TCP, IPv4 and IPv6; prints "ready"
#   echo.py ask ADDRESS PORT SECONDS [stream]
#                                       sends datagrams of all lengths (some in fragments) and
#                                       streams, or streams alone, for so long, and on a crowded
#                                       machine longer: LEAST of each; prints how many came back; 1
#                                       if any was changed, or a datagram did not come
import hashlib, random, select, socket, sys, threading, time

LEAST = 60

def serve(port):
    waiting = []
    for family, any_address in (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"):
        for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:
            s = socket.socket(family, kind)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.bind((any_address, port))
            if kind == socket.SOCK_STREAM:
                s.listen(16)
            waiting.append(s)
    print("ready", flush=True)

    def echo_stream(s):
        while data := s.recv(65536):
            s.sendall(data)
        s.close()
    while True:
        for s in select.select(waiting, [], [])[0]:
            if s.type == socket.SOCK_STREAM:
                threading.Thread(target=echo_stream, args=(s.accept()[0],), daemon=True).start()
            else:
                data, peer = s.recvfrom(65536)
                s.sendto(data, peer)

def ask_datagrams(family, address, port, seconds, result):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(10)
    s.connect((address, port))
    # The longest that fits the MTU, and what is around it; beyond it fragments.
    most = 1472 if family == socket.AF_INET else 1452
    number = 0
    end = time.monotonic() + seconds
    while number < LEAST or time.monotonic() < end:
        lengths = (1, 2, 3, 17, 100, most - 100, most - 1, most, most + 1, 4001, random.randint(1, most))
        length = lengths[number % len(lengths)]
        sent = random.randbytes(length)
        s.send(sent)
        try:
            back = s.recv(65536)
        except TimeoutError:
            result.append(f"datagram {number} of {length} bytes did not come back")
            return
        if hashlib.sha256(back).digest() != hashlib.sha256(sent).digest():
            result.append(f"datagram {number} of {len(sent)} bytes came back as another of {len(back)}")
            return
        number += 1
    result.append(number)

def ask_stream(family, address, port, seconds, result):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(20)
    s.connect((address, port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    number = 0
    end = time.monotonic() + seconds # a SYN that is lost is sent again after a second
    while number < LEAST or time.monotonic() < end:
        # Mostly requests, now and then so much that the kernel sends it in bundles.
        lengths = (1, 2, 31, 100, 700, 1380, 1448, 3000, 200000)
        data = random.randbytes(lengths[number % len(lengths)])
        writer = threading.Thread(target=s.sendall, args=(data,))
        writer.start()
        back = bytearray()
        while len(back) < len(data):
            back += s.recv(65536)
        writer.join()
        if hashlib.sha256(back).digest() != hashlib.sha256(data).digest():
            result.append(f"{len(data)} bytes of a stream came back as others")
            return
        number += 1
    result.append(number)

def ask(address, port, seconds, kinds):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    counts = []
    works = []
    for work in kinds: # at once
        result = []
        works.append((work.__name__, result, threading.Thread(target=work, args=(family, address, port, seconds, result))))
        works[-1][2].start()
    for name, result, thread in works:
        thread.join() # their sockets have deadlines
        if len(result) != 1 or not isinstance(result[0], int) or result[0] == 0:
            sys.exit(f"{name}: {result or 'nothing came back'}")
        counts += result
    print(*counts)

if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    ask(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]),
        [ask_stream] if sys.argv[5:] == ["stream"] else [ask_datagrams, ask_stream])
