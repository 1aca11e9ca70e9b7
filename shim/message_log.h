// SPDX-License-Identifier: MIT
//
// The message log: what the shim saw of an application's socket calls. Files in a run folder:
// server/calls.tlog (LOG_CALLS, in entry order per thread) and server/connections.tlog
// (LOG_CONNECTIONS, the server's side; ids are shared by both).
//
// Offsets count the bytes of the connection since it was accepted or connected, per direction, so
// they match the other end's offsets without knowing the protocol (design §4). Of a UDP socket,
// which is one connection whoever is at its other end, they hold what names the datagram instead
// (base/datagram_key.h). What a process
// connected to (struct connection.outgoing) is logged beside what it accepted.
#ifndef SHIM_MESSAGE_LOG_H
#define SHIM_MESSAGE_LOG_H

#include <stdint.h>

enum { MESSAGE_LOG_VERSION = 1 };

enum call_kind {
    CALL_RECEIVE = 1, // read, readv, recv, recvfrom, recvmsg, ... that returned data
    CALL_SEND = 2,    // write, writev, send, sendto, sendmsg, ... that took data
    CALL_ACCEPT = 3,  // a connection began (offset and length are 0)
    CALL_CLOSE = 4,   // the connection ended
    CALL_WAIT = 5,    // epoll_wait, poll, select returned; length: events ready; connection: 0
    CALL_CONNECT = 6, // connect succeeded, or goes on in the background (offset and length are 0)
};

struct call {
    uint64_t entry_tsc;
    uint64_t exit_tsc;
    uint64_t offset; // of its first byte in that direction's stream
    uint32_t length; // bytes it moved
    uint32_t connection;
    uint32_t process;
    uint32_t thread;
    uint32_t batch; // number of the thread's wait call that returned before it, from 1; 0: none
    uint16_t batch_position; // index of this receive in that batch, from 0
    uint16_t entry_core;
    uint16_t exit_core;
    uint8_t kind;     // enum call_kind
    uint8_t command;  // with which what it received begins (base/command_words.h); 0: not known
    uint32_t padding; // zero
    uint64_t rx_ns;   // RX stamp (CLOCK_REALTIME) from the application's own cmsg; 0: none
};
_Static_assert(sizeof(struct call) == 64, "the log format is fixed");

#endif
