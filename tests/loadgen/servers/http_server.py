# SPDX-License-Identifier: MIT
#
# A server of HTTP/1.1 that does what few do: http_server.py PORT. Each reply comes behind two interim ones, in chunks
# with a trailer; a connection that was idle for 300 ms is told so (408) and closed (RFC 9110, 15.5.9). At its end it
# prints how many requests it answered, and how many 408 it said.
import selectors
import signal
import socket
import sys

REPLY = (b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n'
         b'Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\npag\r\n1;of=two\r\ne\r\n0\r\nX-Sum: 4\r\n\r\n')
FAREWELL = b'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'
IDLE_S = 0.3
answered = told = 0


def end(*_):
    print(answered, told, flush=True)
    sys.exit(0)


def serve(sock):
    """What there is to read of a connection. False: it has ended."""
    global answered
    try:
        text = unread.pop(sock) + sock.recv(65536)
        count = text.count(b'\r\n\r\n')
        unread[sock] = text.split(b'\r\n\r\n')[-1]
        answered += count
        sock.sendall(REPLY * count)
        return bool(text)
    except OSError:
        return False


signal.signal(signal.SIGTERM, end)
listener = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64)
unread, idle = {}, {}
while True:
    for sock in list(idle):
        if idle[sock] <= 0:
            told += 1
            try:
                sock.sendall(FAREWELL)
            except OSError:
                pass
            sock.close()
            del idle[sock], unread[sock]
    with selectors.DefaultSelector() as watched:
        for sock in (listener, *idle):
            watched.register(sock, selectors.EVENT_READ)
        ready = [key.fileobj for key, _ in watched.select(0.05)]
    for sock in idle:
        idle[sock] -= 0.05
    for sock in ready:
        if sock is listener:
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            idle[sock], unread[sock] = IDLE_S, b''
        elif serve(sock):
            idle[sock] = IDLE_S
        else:
            del idle[sock]
            unread.pop(sock, None)
            sock.close()
