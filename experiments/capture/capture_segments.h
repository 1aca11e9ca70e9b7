// SPDX-License-Identifier: MIT
//
// A capture on disk while it goes on: in segments, so that memory does not grow with time, and so
// that what was recorded is there when the capture is killed or the disk is full.
//
// A segment is a pair of logs, events-<number>.tlog and calls-<number>.tlog, each whole like any
// other, and sockets-<number>.tlog where connections have left the table that the capture watches.
// What is not of a segment (connections, clocks, capture.json) is written anew with each,
// capture.json last: its "segments" says which there are, and until when all is in them. What comes
// after the last segment is in events.tlog and calls.tlog when the capture ends by itself; a short
// one has only these.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_SEGMENTS_H
#define EXPERIMENTS_CAPTURE_CAPTURE_SEGMENTS_H

#include "base/error.h"

struct capture;
struct capture_segments;

// Remembers how much room there is.
void capture_segments_begin(struct capture *capture);

// Writes a segment if one is due. When that fails nothing is recorded any more, with a warning, and
// the capture goes on without: what is on disk stays.
int capture_segments_poll(struct capture *capture, struct error *err);

void capture_segments_free(struct capture_segments *segments);

#endif
