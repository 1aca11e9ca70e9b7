# SPDX-License-Identifier: MIT
#
# Runs a command as on a kernel without tcx: no_tcx.py COMMAND...: a seccomp filter lets bpf() make no
# links (EINVAL, as Linux before 6.6 says).
import ctypes, os, platform, struct, sys

BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LINK_CREATE, EINVAL = 28, 22
LOAD, SAME, RETURN = 0x20, 0x15, 0x06  # of a word of struct seccomp_data; equal to; and the verdict
ALLOW, ERROR = 0x7fff0000, 0x00050000
code = [(LOAD, 0, 0, 0), (SAME, 0, 3, BPF), (LOAD, 0, 0, 16), (SAME, 0, 1, LINK_CREATE),
        (RETURN, 0, 0, ERROR | EINVAL), (RETURN, 0, 0, ALLOW)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, program, 0, 0):
    sys.exit(f"no seccomp: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
