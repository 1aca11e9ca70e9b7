# SPDX-License-Identifier: MIT
#
# Datagrams and a stream whose bytes both ends hash: hashed.py serve PORT, and hashed.py send ADDRESS PORT DATAGRAMS SEGMENTS,
# which asks for the hashes of what arrived and ends with 1 if they are not those of what was sent. Each datagram is
# answered by a byte, with at most WINDOW unanswered, so that no socket's buffer overflows and none may be missing.
import hashlib, random, socket, struct, sys, threading

WINDOW, LEAST, MOST, SEGMENT = 32, 16, 600, 300


def serve(port):
    datagrams, listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket()
    datagrams.bind(("0.0.0.0", port))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("0.0.0.0", port))
    listening.listen()
    print("ready", flush=True)

    def take_datagrams():
        digest = hashlib.sha256()
        while True:
            data, peer = datagrams.recvfrom(2048)
            if data == b"end":
                datagrams.sendto(digest.digest(), peer)
                digest = hashlib.sha256()
            else:
                digest.update(data)
                datagrams.sendto(b"+", peer)

    threading.Thread(target=take_datagrams, daemon=True).start()
    while True:
        connection, _ = listening.accept()

        def take_stream(connection=connection):
            digest = hashlib.sha256()
            while data := connection.recv(65536):
                digest.update(data)
            connection.send(digest.digest())
            connection.close()

        threading.Thread(target=take_stream, daemon=True).start()


def send(address, port, datagrams, segments):
    results = {}

    def send_datagrams():
        s, digest, unanswered = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), hashlib.sha256(), 0
        s.settimeout(30)
        s.connect((address, port))
        pool = random.randbytes(65536)
        for n in range(datagrams):
            size = LEAST + n * 37 % (MOST - LEAST)
            data = struct.pack("Q", n) + pool[n % 60000:n % 60000 + size - 8]
            digest.update(data)
            s.send(data)
            unanswered += 1
            while unanswered >= WINDOW:
                assert s.recv(8) == b"+"
                unanswered -= 1
        for _ in range(unanswered):
            assert s.recv(8) == b"+"
        s.send(b"end")
        results["datagrams"] = s.recv(64) == digest.digest()

    # Without Nagle and bundles: each of its writes is a segment, as requests are.
    def send_stream():
        s, digest = socket.create_connection((address, port)), hashlib.sha256()
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pool = random.randbytes(65536)
        for n in range(segments):
            data = struct.pack("Q", n) + pool[n % 60000:n % 60000 + SEGMENT]
            digest.update(data)
            s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        results["stream"] = s.recv(64) == digest.digest()

    threads = [threading.Thread(target=what) for what in (send_datagrams, send_stream)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(results)
    sys.exit(results != {"datagrams": True, "stream": True})


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    send(sys.argv[2], *map(int, sys.argv[3:6]))
