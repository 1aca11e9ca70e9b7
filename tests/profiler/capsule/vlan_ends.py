#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Programs of our own that tag and untag, for kernels without VLAN devices: vlan_ends.py push|pop INTERFACE TAGS. `push`
# gives what the interface sends as many 802.1Q tags (the outer one beside the packet, as the kernel keeps it, and an
# inner one in the frame), `pop` takes them off what it receives. At tcx, behind the programs that are there already; prints
# "attached" and stays until it is killed.
import ctypes, platform, socket, struct, sys, time

PROG_LOAD, LINK_CREATE = 5, 28
SCHED_CLS, TCX = 3, {"push": 47, "pop": 46} # egress, ingress
CALL, EXIT, MOVE, MOVE_FROM = 0x85, 0x95, 0xb7, 0xbf
VLAN_PUSH, VLAN_POP = 18, 19 # bpf-helpers(7)
NEXT = -1

def bpf(command, *attributes):
    data = b"".join(attributes)
    attributes = ctypes.create_string_buffer(data, max(len(data), 120))
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, command, attributes, len(attributes))
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return fd

def instruction(code, to=0, source=0, value=0):
    return struct.pack("<BBhi", code, source << 4 | to, 0, value)

def program(what, tags):
    code = instruction(MOVE_FROM, 6, 1)
    for tag in range(tags):
        code += instruction(MOVE_FROM, 1, 6)
        if what == "push":
            code += instruction(MOVE, 2, 0, socket.htons(0x8100)) + instruction(MOVE, 3, 0, 7 + tag)
        code += instruction(CALL, value=VLAN_PUSH if what == "push" else VLAN_POP)
    code += instruction(MOVE, 0, 0, NEXT) + instruction(EXIT)
    code = ctypes.create_string_buffer(code, len(code))
    license = ctypes.create_string_buffer(b"GPL")
    return bpf(PROG_LOAD, struct.pack("<IIQQ", SCHED_CLS, len(code) // 8, ctypes.addressof(code), ctypes.addressof(license)))

what, interface, tags = sys.argv[1], sys.argv[2], int(sys.argv[3])
link = bpf(LINK_CREATE, struct.pack("<IIII", program(what, tags), socket.if_nametoindex(interface), TCX[what], 0))
print("attached", flush=True)
time.sleep(300)
