// SPDX-License-Identifier: MIT
//
// The `events` backend: what the kernel does on the captured cores and with the watched sockets,
// as 32-byte records (profiler/bpf/event_log.h) in a ring per core that the reader has mapped.
//
// These programs run inside what they measure, so every one filters first, reads the clock once,
// takes its slot with one atomic add on its own core's line and wakes nobody. Programs on one core
// may interrupt one another; a record's last store is the one that makes it whole.
#include "profiler/bpf/record.bpf.h"

#include "profiler/bpf/calls.bpf.h"
#include "profiler/bpf/connections.bpf.h"
#include "profiler/bpf/datagrams.bpf.h"
#include "profiler/bpf/file_locks.bpf.h"
#include "profiler/bpf/interrupts.bpf.h"
#include "profiler/bpf/losses.bpf.h"
#include "profiler/bpf/memory.bpf.h"
#include "profiler/bpf/messages.bpf.h"
#include "profiler/bpf/scheduler.bpf.h"
#include "profiler/bpf/storage.bpf.h"

char LICENSE[] SEC("license") = "GPL"; // what the kernel asks of programs that use its tracing
