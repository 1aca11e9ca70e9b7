// SPDX-License-Identifier: MIT
//
// Servers that run already: on which ports, and in which network namespaces, the processes listen
// that somebody names, or those of a control group (a container's, a unit's). Found in /proc by
// looking only; processes that come later are found by looking again.
#ifndef PROFILER_HOST_RUNNING_SERVERS_H
#define PROFILER_HOST_RUNNING_SERVERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/array.h"
#include "base/error.h"

struct listening {
    uint64_t namespace; // of the network: the inode of /proc/PID/ns/net
    pid_t process;      // one that listens there
    uint16_t port;      // of TCP
};
struct listening_array ARRAY_OF(struct listening);

struct running_servers;

// pids: "12,13", with all that descend from them; cgroups: folders of control groups, separated by
// commas, with all below them ("/sys/fs/cgroup/..." or what follows the mount's path, as systemd
// and /proc/PID/cgroup write it); units: systemd's. Each may be NULL. What is not there is
// ERROR_INPUT.
int running_servers_open(const char *pids, const char *cgroups, const char *units,
                         struct running_servers **out, struct error *err);
void running_servers_free(struct running_servers *servers); // harmless on NULL

// Every process that has a listening TCP socket on one of the ports in a network namespace (the
// inode of /proc/PID/ns/net), those that share one included: appended to *out, once for each port.
// Looks at all descriptors of the namespace's processes. -1: no memory.
int running_servers_on(uint64_t namespace, const uint16_t *ports, size_t count,
                       struct listening_array *out);

// Where they listen by now that was not in the answers before: appended to *fresh. Processes and
// folders that have gone meanwhile are none; lack of memory is ERROR_FAILED.
int running_servers_look(struct running_servers *servers, struct listening_array *fresh,
                         struct error *err);

#endif
