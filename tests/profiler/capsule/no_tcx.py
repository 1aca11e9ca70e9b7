# SPDX-License-Identifier: MIT
#
# Runs a command as on a kernel without tcx: no_tcx.py COMMAND...: a seccomp filter lets bpf() make no
# links (EINVAL, as Linux before 6.6 says). no_tcx.py --no-tracing COMMAND...: nor may programs be attached to
# tracepoints in the older way.
import ctypes, os, platform, struct, sys

BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LINK_CREATE, RAW_TRACEPOINT_OPEN, EINVAL = 28, 17, 22
LOAD, SAME, RETURN = 0x20, 0x15, 0x06  # of a word of struct seccomp_data; equal to; and the verdict
ALLOW, ERROR = 0x7fff0000, 0x00050000
no_tracing = sys.argv[1] == "--no-tracing"
command = sys.argv[1 + no_tracing:]
code = [(LOAD, 0, 0, 0), (SAME, 0, 4, BPF), (LOAD, 0, 0, 16), (SAME, 1, 0, LINK_CREATE),
        (SAME, 0, 1, RAW_TRACEPOINT_OPEN if no_tracing else LINK_CREATE), (RETURN, 0, 0, ERROR | EINVAL),
        (RETURN, 0, 0, ALLOW)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, program, 0, 0):
    sys.exit(f"no seccomp: {os.strerror(ctypes.get_errno())}")
os.execvp(command[0], command)
