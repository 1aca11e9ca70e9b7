#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Datagrams of kinds that a hop has to read or leave alone, to an echo.py and back, one after the other; prints how many
# of each kind came back as they were sent; 1 if any did not.
#
#   kinds.py ADDRESS PORT
import collections, random, socket, sys

IPV6_HOPOPTS, IPV6_DSTOPTS, SOL_UDP, UDP_SEGMENT = 54, 59, 17, 103
PADDING = bytes((0, 0, 1, 4, 0, 0, 0, 0)) # an extension header that says nothing

address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
most = 1452 if family == socket.AF_INET6 else 1472 # that the MTU has room for
came = collections.Counter()

def ask(kind, lengths, option=None):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect((address, port))
        if option:
            s.setsockopt(*option)
        for length in lengths:
            sent = random.randbytes(length)
            s.send(sent)
            back = b""
            while len(back) < length:
                back += s.recv(65536)
            if back != sent:
                sys.exit(f"{kind}: {length} bytes came back as others")
            came[kind] += 1

ask("long", range(most - 96, most + 1)) # from 96 bytes below the MTU to it
if family == socket.AF_INET:
    ask("options", [100] * 10, (socket.IPPROTO_IP, socket.IP_OPTIONS, b"\x01" * 8))
else:
    ask("options", [100] * 10, (socket.IPPROTO_IPV6, IPV6_HOPOPTS, PADDING))
    ask("options", [100] * 10, (socket.IPPROTO_IPV6, IPV6_DSTOPTS, PADDING))
ask("bundles", [5000] * 10, (SOL_UDP, UDP_SEGMENT, 500))
print(*(f"{kind} {count}" for kind, count in came.items()))
