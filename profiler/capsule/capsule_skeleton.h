// SPDX-License-Identifier: MIT
//
// The generated skeleton of profiler/bpf/capsule.bpf.c, with the warnings that generated code may
// cause turned off around it. For the file that loads the programs.
#ifndef PROFILER_CAPSULE_CAPSULE_SKELETON_H
#define PROFILER_CAPSULE_CAPSULE_SKELETON_H

#include "profiler/bpf/hop_log.h"
#include "profiler/bpf/packet_head.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "profiler/bpf/capsule.skel.h"
#pragma GCC diagnostic pop

#endif
