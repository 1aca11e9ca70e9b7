#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# capture_packets.py PORT FILE: writes what is sent to that port over loopback (IPv4) into a pcap
# file, until a SIGTERM or its parent's end. Each packet is in it twice, as it leaves and as it arrives.
import ctypes
import os
import signal
import socket
import struct
import sys
import time

ETH_P_ALL, SO_ATTACH_FILTER, SO_RCVBUFFORCE = 3, 26, 33
port, path = int(sys.argv[1]), sys.argv[2]

# The port is looked at in the kernel: others' traffic must not fill the socket's buffer.
program = b"".join(struct.pack("HBBI", *one) for one in (
    (0x28, 0, 0, 12), (0x15, 0, 3, 0x0800),  # IPv4
    (0x28, 0, 0, 36), (0x15, 0, 1, port),    # to that port
    (0x06, 0, 0, 1 << 18), (0x06, 0, 0, 0)))
kept = ctypes.create_string_buffer(program)
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # nothing yet: others' packets would be there before the filter
packets.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                   struct.pack("HL", len(program) // 8, ctypes.addressof(kept)))
packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
packets.bind(("lo", ETH_P_ALL))
packets.settimeout(0.1)
ended = []
parent = os.getppid()
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
with open(path, "wb") as file:
    file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1))
    file.flush()
    while True:
        try:
            packet = packets.recv(1 << 18)
        except socket.timeout:
            if ended or os.getppid() != parent:
                break
            continue
        now = time.time_ns() // 1000
        file.write(struct.pack("=IIII", now // 1000000, now % 1000000, len(packet), len(packet)) + packet)
