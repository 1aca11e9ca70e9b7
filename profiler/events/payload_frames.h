// SPDX-License-Identifier: MIT
//
// Takes the first bytes of socket calls from the BPF programs' ring, and from these where messages
// end (workloads/framing/framing.h): EVENT_FRAMED records. The bytes themselves are forgotten at
// once.
#ifndef PROFILER_EVENTS_PAYLOAD_FRAMES_H
#define PROFILER_EVENTS_PAYLOAD_FRAMES_H

#include <jansson.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "profiler/bpf/event_log.h"

struct framing_grammar;
struct payload_frames;

// Of the ring, a power of two: a thousand calls a poll of those that take most room.
enum { PAYLOAD_RING_BYTES = 32 << 20 };

struct frame_array ARRAY_OF(struct event);

// map_fd: the programs' ring, which must outlive it.
int payload_frames_open(const struct framing_grammar *grammar, int map_fd,
                        struct payload_frames **out, struct error *err);

// Takes what is in the ring. NULL does nothing.
void payload_frames_poll(struct payload_frames *frames);

// What ended in calls on that core, in the order in which the ring had it, until it is forgotten.
struct frame_array *payload_frames_of(struct payload_frames *frames, unsigned core);

// As in docs/formats.md; `unseen` and `dropped` as the programs count them. The caller owns it.
json_t *payload_frames_json(const struct payload_frames *frames, uint64_t unseen, uint64_t dropped);

void payload_frames_free(struct payload_frames *frames);

#endif
