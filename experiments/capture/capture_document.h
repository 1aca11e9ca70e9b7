// SPDX-License-Identifier: MIT
//
// capture.json: what a capture recorded, what it lost and could not do.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_DOCUMENT_H
#define EXPERIMENTS_CAPTURE_CAPTURE_DOCUMENT_H

#include "base/error.h"

struct capture;

// Makes capture->document, with all that does not depend on what the backends say at their end.
int capture_document_begin(struct capture *capture, struct error *err);

// Writes clock.tlog, and says so in capture->document if there is one.
int capture_document_write_clock(struct capture *capture, struct error *err);

// Writes capture.json for a capture that goes on.
int capture_document_write_so_far(struct capture *capture, struct error *err);

// Writes capture->document as capture.json of a capture that has ended by itself.
int capture_document_write(struct capture *capture, struct error *err);

#endif
