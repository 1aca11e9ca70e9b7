# SPDX-License-Identifier: MIT
#
# A Redis behind TLS, which after ten requests on a connection does what its user's name says:
# tls_server.py PORT CERTIFICATE [late]. CERTIFICATE.pem and .key are what it shows. late: it wants a certificate of
# its clients, and looks whether they sent one when they have long sent more. It keeps TLS
# records in its own hands, so as to break them. Of each connection that the client ends it prints
# whether the client said so in TLS ("closed") or not ("cut off"), or that it is not known ("reset": it had
# not read all, which takes what it said with it).
import socket
import ssl
import sys
import time

from listen import say, serve_each
from redis_words import words


class Records:
    """A connection's decrypted bytes, as a file has them."""

    def __init__(self, connection):
        self.connection, self.buffer, self.met, self.heard = connection, b'', False, False
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.wait(self.tls.do_handshake)
        self.met = True

    def send(self):
        self.connection.sendall(self.outgoing.read())

    def wait(self, step):
        while True:
            try:
                result = step()
                self.send()
                return result
            except ssl.SSLWantReadError:
                self.send()
                more = self.connection.recv(65536)
                if not more:
                    if self.met:
                        say('cut off')
                    raise OSError('closed') from None
                if late and self.heard and not self.met:
                    time.sleep(1)
                self.heard = True
                self.incoming.write(more)
            except ssl.SSLError:
                self.connection.sendall(self.outgoing.read())  # its alert
                raise

    def more(self):
        found = self.wait(lambda: self.tls.read(65536))
        if not found:
            say('closed')
            raise OSError('closed')
        return found

    def read(self, count):
        while len(self.buffer) < count:
            self.buffer += self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def readline(self):
        while b'\n' not in self.buffer:
            self.buffer += self.more()
        return self.read(self.buffer.index(b'\n') + 1)

    def write(self, text):
        self.tls.write(text)
        self.send()


def break_it(records, fault):
    if fault == b'garbage':
        records.connection.sendall(b'\x17\x03\x03\x00\x40' + b'g' * 64)
    elif fault == b'alert':
        records.connection.sendall(b'\x15\x03\x03\x00\x02\x02\x28')
    elif fault == b'cut':
        records.tls.write(b'$-1\r\n')
        records.connection.sendall(records.outgoing.read()[:-3])
    elif fault == b'closes':
        try:
            records.tls.unwrap()
        except ssl.SSLError:
            pass
        records.send()


def serve(connection):
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        records, fault, served = Records(connection), b'', 0
        while (command := words(records)) is not None:
            if command[0] == b'AUTH':
                fault = command[1]
                records.write(b'+OK\r\n')
                continue
            served += 1
            if served > 10:
                break_it(records, fault)
                break
            records.write(b'+OK\r\n' if command[0] == b'SET' else b'$200\r\n' + b'v' * 200 + b'\r\n')
    except ConnectionResetError:
        say('reset')
    except (OSError, ValueError):
        pass
    connection.close()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + '.pem', sys.argv[2] + '.key')
late = sys.argv[3:] == ['late']
if late:
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(sys.argv[2] + '.pem')
serve_each(sys.argv[1], serve)
