#!/usr/bin/env python3
"""on_terminal.py PATTERN COLUMNS COMMAND...: runs it on a terminal of its own, COLUMNS wide (0: it does not say),
and writes what it shows to stdout. As soon as that matches PATTERN, Ctrl-C is pressed; empty: never. The
exit code is the command's."""
import fcntl, os, pty, re, select, struct, sys, termios

ctrl_c, columns, shown = sys.argv[1].encode(), int(sys.argv[2]), b""
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(sys.argv[3], sys.argv[3:])
while True:
    if ctrl_c and re.search(ctrl_c, shown):
        os.write(terminal, b"\x03")
        ctrl_c = b""
    if not select.select([terminal], [], [], 0.05)[0]:
        continue
    try:
        got = os.read(terminal, 65536)
    except OSError:
        break
    if not got:
        break
    sys.stdout.buffer.write(got)
    shown += got
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
