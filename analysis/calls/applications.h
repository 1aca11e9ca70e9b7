// SPDX-License-Identifier: MIT
//
// Several servers in one capture: which application a thread, a port and a hand-off belong to, so
// that each message belongs to its server and what the others do to it has their name (design §12,
// phase 4). An application is the processes that serve the same ports of a network namespace, as
// workers of one server do, with all their threads, and the processes that these forked.
#ifndef ANALYSIS_CALLS_APPLICATIONS_H
#define ANALYSIS_CALLS_APPLICATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/connection.h"
#include "shim/message_log.h"

#define NO_APPLICATION UINT16_MAX

struct application {
    // "redis-server"; "redis-server:6380" where others have that name, too; "redis-server (12)",
    // with a process, where they have the port as well, in other network namespaces.
    char name[64];
    char program[48];   // "redis-server"; "": none of its threads was seen
    uint32_t process;   // one of its processes; 0: not known, its calls were not recorded
    uint16_t port;      // one that it serves
    uint16_t namespace; // in which it does so (struct connection); 0: not known
};

// A port in a network namespace, of which no other application serves it.
static inline uint32_t application_place(const struct application *application)
{
    return (uint32_t)application->port << 16 | application->namespace;
}

// What a thread is to the application it belongs to.
enum membership {
    MEMBERSHIP_NONE,
    MEMBERSHIP_SERVES, // it makes socket calls
    MEMBERSHIP_OWN,    // it does the server's own work: a collector, a compactor
    MEMBERSHIP_FORKED, // it belongs to a process that the server's forked, and that serves nobody
};
struct application_member {
    uint32_t member; // a thread, or a port and its namespace
    uint16_t application;
    uint8_t membership; // enum membership
};

struct applications {
    struct ARRAY_OF(struct application) items;
    struct ARRAY_OF(struct application_member) threads, places; // ascending
};

// From the shim's logs (calls as recorded; its connections) and the kernel's sockets: a port that
// only the kernel's table knows is an application without a program. host gives the names and the
// threads that make no socket calls, may be NULL. -1: no memory. The caller frees either way.
int applications_build(struct applications *out, const struct call *calls, size_t call_count,
                       const struct connection *connections, size_t connection_count,
                       const struct connection *sockets, size_t socket_count,
                       const struct host_timeline *host);
void applications_free(struct applications *applications);

// NO_APPLICATION: none of them.
uint16_t application_of_thread(const struct applications *applications, uint32_t thread);
enum membership membership_of_thread(const struct applications *applications, uint32_t thread);
// Of its local port, in its namespace as far as that is known.
uint16_t application_of_connection(const struct applications *applications,
                                   const struct connection *connection);

// Says of every hand-off whose it is (struct core_timeline.handoff_applications), where there is
// more than one application. -1: no memory.
int applications_mark_handoffs(const struct applications *applications, struct host_timeline *host,
                               const struct connection *sockets, size_t socket_count);

#endif
