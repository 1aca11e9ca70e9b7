# SPDX-License-Identifier: MIT
#
# How many tcx programs are at the interfaces of the network namespace it runs in, by the kernel.
import ctypes, platform, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_QUERY, TCX_INGRESS, TCX_EGRESS, MOST = 16, 46, 47, 64
total = 0
for index, _ in socket.if_nameindex():
    for direction in TCX_INGRESS, TCX_EGRESS:
        ids = (ctypes.c_uint32 * MOST)()
        attributes = ctypes.create_string_buffer(
            struct.pack("IIIIQI", index, direction, 0, 0, ctypes.addressof(ids), MOST).ljust(64, b"\0"))
        if libc.syscall(number, PROG_QUERY, attributes, 64) < 0:
            raise SystemExit(f"BPF_PROG_QUERY: {ctypes.get_errno()}")
        total += struct.unpack_from("I", attributes, 24)[0]
print(total)
