// SPDX-License-Identifier: MIT
//
// Whose sockets a capture of kernel events watches, by their network namespaces (inodes of
// /proc/PID/ns/net): the list that its programs read, up to its first 0. An empty one is all.
#ifndef PROFILER_EVENTS_WATCHED_NAMESPACES_H
#define PROFILER_EVENTS_WATCHED_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/bpf/event_rings.h"

// Our own, if somebody in it listens on one of the TCP ports (one bit a port); else 0.
uint32_t watched_namespaces_guess(const uint64_t ports[65536 / 64]);

// Adds one. Beyond what there is room for, all are watched, from then on. named: whether the list
// is of processes that somebody named, else a guess, or nothing, which the first one takes the
// place of; true afterwards. False: it was there already.
bool watched_namespaces_add(uint32_t list[EVENTS_NAMESPACES], bool *named, uint32_t inode);

bool watched_namespaces_has(const uint32_t list[EVENTS_NAMESPACES], uint32_t inode);

#endif
