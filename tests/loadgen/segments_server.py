#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# A web server over TLS that ends each connection behind its first reply. When it ends it has written, a line for each
# connection, its request's method and how many segments with data had come (TCP_INFO's tcpi_data_segs_in) when the request had.
#
# usage: segments_server.py PORT CERTIFICATE KEY FILE
import signal
import socket
import ssl
import struct
import sys

DATA_SEGS_IN = 152  # its offset in struct tcp_info (include/uapi/linux/tcp.h)

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
reply = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
with open(sys.argv[4], "w", buffering=1) as log:
    while True:
        plain, _ = listener.accept()
        try:
            with context.wrap_socket(plain, server_side=True) as client:
                client.settimeout(20)
                asked = b""
                while not asked.endswith(b"\r\n\r\n"):
                    more = client.recv(4096)
                    if not more:
                        break
                    asked += more
                else:
                    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                    log.write("%s %d\n" % (asked.split()[0].decode(), *struct.unpack_from("<I", info, DATA_SEGS_IN)))
                    client.sendall(reply)
        except OSError:
            pass
