#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Forges trailers of Time Capsule: of each UDP packet with bytes behind the IP packet that comes in at an interface, sends
# another one out, which is changed there, for SECONDS. Prints "ready", then how many it has sent of each kind.
#
#   forge.py FROM TO SECONDS
import collections, json, random, socket, struct, sys, time

HEAD = 24 # bytes of a trailer's head; the number of stamps is the fourth

def forged(frame, end):
    """A packet whose IP part ends at `end`, and what was done to it."""
    kind = random.choice(("copied", "bit", "byte of the head", "cut", "longer", "of another flow", "counts", "all of it"))
    if kind == "bit":
        frame[random.randrange(end, len(frame))] ^= 1 << random.randrange(8)
    elif kind == "byte of the head":
        frame[end + random.randrange(HEAD)] ^= random.randrange(1, 256)
    elif kind == "cut":
        del frame[random.randrange(end, len(frame)):]
    elif kind == "longer":
        frame += random.randbytes(random.randrange(1, 60))
    elif kind == "of another flow":
        frame[35] ^= 1 # the source port; the checksum is not that of the packet any more
    elif kind == "counts":
        frame[end + 3] ^= random.randrange(1, 256)
    elif kind == "all of it":
        frame[end + 4:] = random.randbytes(len(frame) - end - 4)
    return kind

came = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
came.bind((sys.argv[1], 0))
came.settimeout(0.1)
goes = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
goes.bind((sys.argv[2], 0))
sent = collections.Counter()
print("ready", flush=True)
until = time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    try:
        data, address = came.recvfrom(4096)
    except TimeoutError:
        continue
    if address[2] == socket.PACKET_OUTGOING or data[12:14] != b"\x08\x00" or data[23] != socket.IPPROTO_UDP:
        continue
    end = 14 + struct.unpack(">H", data[16:18])[0]
    if len(data) > end:
        frame = bytearray(data)
        sent[forged(frame, end)] += goes.send(frame) > 0
print(json.dumps({"all": sum(sent.values()), **sent}))
