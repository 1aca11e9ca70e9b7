#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memcached's get, told by the key how to answer: fanout_server.py DELAY_S HANGUP

Of the workload's keys ("....0000017") each whose number is a multiple of ten is answered DELAY_S late, the others at
once; with HANGUP the connection is closed instead for each multiple of HANGUP. Connections do not wait for one another.
"""
import asyncio
import re
import sys

delay_s, hangup = float(sys.argv[1]), int(sys.argv[2])


async def serve(reader, writer):
    try:
        while line := await reader.readline():
            words = line.split()
            if words[:1] != [b'get']:
                writer.write(b'VERSION 1\r\n' if words[:1] == [b'version'] else b'ERROR\r\n')
                continue
            number = int(re.search(rb'(\d+)\D*$', words[1])[1])
            if hangup and number % hangup == 0:
                return
            if number % 10 == 0:
                await asyncio.sleep(delay_s)
            writer.write(b'VALUE %s 0 3\r\nabc\r\nEND\r\n' % words[1])
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
