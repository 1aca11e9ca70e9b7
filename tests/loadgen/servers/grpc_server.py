#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# A gRPC server of Debian's library for the load generator's tests: grpc_server.py PORT [CERT KEY].
# /test.Lab/Echo answers a call with its message; /test.Lab/Half lacks the keys that end in an odd
# digit; /test.Lab/Full has no room. When it is told to end it prints how many calls each had, and
# how many bytes they were.
import collections
import signal
import sys
from concurrent import futures

import grpc

calls = collections.Counter()
count_bytes = collections.Counter()


def answer(name, message, context):
    calls[name] += 1
    count_bytes[name] += len(message)
    if name == "Half" and (message[-1] - ord("0")) % 2:
        context.abort(grpc.StatusCode.NOT_FOUND, "no such key")
    if name == "Full":
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no room")
    return message


class Lab(grpc.GenericRpcHandler):
    def service(self, details):
        service, name = details.method.rsplit("/", 1)
        if service != "/test.Lab" or name not in ("Echo", "Half", "Full"):
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda message, context: answer(name, message, context))


# One thread, so that the counts need no lock.
server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), handlers=[Lab()])
place = f"127.0.0.1:{sys.argv[1]}"
if len(sys.argv) > 2:
    with open(sys.argv[2], "rb") as certificate, open(sys.argv[3], "rb") as key:
        credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
    server.add_secure_port(place, credentials)
else:
    server.add_insecure_port(place)
signal.signal(signal.SIGTERM, lambda *_: server.stop(None))
server.start()
server.wait_for_termination()
for name in sorted(calls):
    print(name, calls[name], count_bytes[name], flush=True)
