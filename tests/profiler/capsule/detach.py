# SPDX-License-Identifier: MIT
#
# Takes from an interface of this namespace what the capsule's command attached: detach.py INTERFACE
import ctypes, platform, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
CALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_QUERY, LINK_GET_FD_BY_ID, LINK_DETACH = 16, 30, 34
TCX_INGRESS, TCX_EGRESS, MOST = 46, 47, 64


def bpf(command, attributes):
    answer = libc.syscall(CALL, command, attributes, len(attributes))
    if answer < 0:
        raise SystemExit(f"bpf({command}): errno {ctypes.get_errno()}")
    return answer


index = socket.if_nametoindex(sys.argv[1])
detached = 0
for direction in TCX_INGRESS, TCX_EGRESS:
    programs, links = (ctypes.c_uint32 * MOST)(), (ctypes.c_uint32 * MOST)()
    # target_ifindex, attach_type, query_flags, attach_flags, prog_ids, count, prog_attach_flags, link_ids,
    # link_attach_flags, revision (linux/bpf.h, BPF_PROG_QUERY)
    query = ctypes.create_string_buffer(
        struct.pack("=IIIIQIIQQQQ", index, direction, 0, 0, ctypes.addressof(programs), MOST, 0, 0,
                    ctypes.addressof(links), 0, 0), 64)
    bpf(PROG_QUERY, query)
    for n in range(struct.unpack_from("=I", query, 24)[0]):
        link = bpf(LINK_GET_FD_BY_ID, ctypes.create_string_buffer(struct.pack("=I", links[n]), 16))
        bpf(LINK_DETACH, ctypes.create_string_buffer(struct.pack("=I", link), 16))
        detached += 1
sys.exit(detached == 0)
