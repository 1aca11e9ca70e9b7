# SPDX-License-Identifier: MIT
#
# Redis Clusters of two nodes that send requests elsewhere as no cluster should:
# cluster_server.py BEHAVIOUR PORT OTHER-PORT ... Both ports of a cluster say that PORT owns the lower
# half of the slots and OTHER-PORT the upper.
import binascii
import socket
import sys
import threading

from redis_words import words

NONSENSE = [b'MOVED', b'MOVED x 127.0.0.1:6379', b'MOVED 16384 127.0.0.1:6379', b'MOVED %d 127.0.0.1:0',
            b'MOVED %d 127.0.0.1:99999', b'MOVED %d', b'ASK %d :', b'ASK %d 127.0.0.1', b'MOVED -1 127.0.0.1:6379']


def slot_of(key):
    return binascii.crc_hqx(key, 0) % 16384


def say_slots(port, other):
    def node(of, first, last):
        return b'*3\r\n:%d\r\n:%d\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$40\r\n%040d\r\n' % (first, last, of, of)
    return b'*2\r\n' + node(port, 0, 8191) + node(other, 8192, 16383)


def answer(behaviour, here, there, key, number):
    slot = slot_of(key)
    if behaviour == 'nowhere':
        return b'-MOVED %d 127.0.0.1:1\r\n' % slot
    if behaviour == 'nobody':
        return b'-MOVED %d nobody.invalid:6379\r\n' % slot
    if behaviour == 'nonsense':
        line = NONSENSE[number % len(NONSENSE)]
        return b'-' + (line % slot if b'%d' in line else line) + b'\r\n'
    if behaviour == 'circle':
        return b'-MOVED %d 127.0.0.1:%d\r\n' % (slot, there)
    if behaviour == 'itself':
        return b'-MOVED %d :%d\r\n' % (slot, here)
    if behaviour == 'ask-circle':
        return b'-ASK %d 127.0.0.1:%d\r\n' % (slot, there)
    if behaviour == 'another-slot':
        return b'-MOVED %d 127.0.0.1:%d\r\n' % ((slot + 1) % 16384, there)
    if behaviour == 'long':
        return b'-MOVED %d %s:6379\r\n' % (slot, b'a' * 300)
    if behaviour == 'down':
        return b'-CLUSTERDOWN The cluster is down\r\n'
    if behaviour == 'wavers':  # each connection answers nine of ten
        return b'-TRYAGAIN later\r\n' if number % 10 == 0 else b'$1\r\nv\r\n'
    return b'-ERR what is %s\r\n' % behaviour.encode()


def serve(connection, behaviour, port, other, here):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    source, number = connection.makefile('rb'), 0
    try:
        while (command := words(source)) is not None:
            if command[0] == b'CLUSTER':
                connection.sendall(say_slots(port, other))
            elif command[0] == b'PING':
                connection.sendall(b'+PONG\r\n')
            elif command[0] == b'ASKING':
                connection.sendall(b'+OK\r\n')
            elif behaviour == 'closes' and here == other:
                break
            elif behaviour == 'closes':
                connection.sendall(b'-MOVED %d 127.0.0.1:%d\r\n' % (slot_of(command[1]), other))
            else:
                number += 1
                connection.sendall(answer(behaviour, here, other if here == port else port, command[1], number))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


def listen(here, cluster):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('127.0.0.1', here))
    listener.listen(64)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0], *cluster, here), daemon=True).start()


for at in range(1, len(sys.argv), 3):
    cluster = sys.argv[at], int(sys.argv[at + 1]), int(sys.argv[at + 2])
    for here in cluster[1:]:
        threading.Thread(target=listen, args=(here, cluster), daemon=True).start()
threading.Event().wait()
