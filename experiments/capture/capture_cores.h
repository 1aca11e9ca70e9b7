// SPDX-License-Identifier: MIT
//
// Which cores a capture records: those that were asked for, those that are to receive, and those
// that are found to deliver or serve meanwhile.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_CORES_H
#define EXPERIMENTS_CAPTURE_CAPTURE_CORES_H

#include "base/error.h"

struct capture;

// Sets capture->cores: those asked for and those that are to receive, which deliver within a moment
// where something arrives already, or are in the devices' settings, unless these are so many that
// it tells nothing.
void capture_cores_widen(struct capture *capture);

// Has every backend follow to the cores that deliver or serve by now.
int capture_cores_follow(struct capture *capture, struct error *err);

// Says which cores delivered or served that a backend did not record.
void capture_cores_warn(struct capture *capture);

#endif
