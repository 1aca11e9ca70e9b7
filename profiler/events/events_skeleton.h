// SPDX-License-Identifier: MIT
//
// The generated skeleton of profiler/bpf/events.bpf.c, with the warnings that generated code may
// cause turned off around it. For the two files that load the programs.
#ifndef PROFILER_EVENTS_EVENTS_SKELETON_H
#define PROFILER_EVENTS_EVENTS_SKELETON_H

#include "base/connection.h"
#include "profiler/bpf/event_rings.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "profiler/bpf/events.skel.h"
#pragma GCC diagnostic pop

#endif
