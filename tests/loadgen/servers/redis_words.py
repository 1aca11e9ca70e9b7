# SPDX-License-Identifier: MIT
#
# What clients say to a Redis, for servers that answer as none should.


def words(source):
    """One command, as a list of words; None at the end."""
    head = source.readline()
    if not head:
        return None
    found = []
    for _ in range(int(head[1:])):
        found.append(source.read(int(source.readline()[1:]) + 2)[:-2])
    return found
