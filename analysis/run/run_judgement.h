// SPDX-License-Identifier: MIT
//
// What the verdict and the lede go by, so that they agree: which causes are worth the reader's
// time, and whose fault it is.
#ifndef ANALYSIS_RUN_JUDGEMENT_H
#define ANALYSIS_RUN_JUDGEMENT_H

#include "analysis/diagnosis/diagnosis.h"

// From this share of the extra time on a cause stands out, if it is a good part of what an ordinary
// message takes, too.
#define STANDS_OUT_SHARE 0.1

// Whether a cause is a good part of what made the slice slow, and of what an ordinary message
// takes, and more than what any machine adds now and then (docs/diagnosis.md); with all that it is
// a piece of (run_holders.h). Never what is neither the server's doing nor the client's.
bool run_cause_stands_out(const struct diagnosis *diagnosis, const struct cause *cause);

// No cause does.
bool run_is_calm(const struct diagnosis *diagnosis);

// How long programs that are not the server had its cores, where these were several, none of them
// had nearly all of that time, and together they stand out; else 0.
double run_crowd_ns(const struct diagnosis *diagnosis);

// Whether what is in that category is a wait for replies to other requests, on every connection.
bool run_awaits_replies(const char *category);

// Whether it is the load's own machine that made its requests late. Not where every connection is
// full, or one has yet to be opened: what the load then waits for is the server.
bool run_cause_is_client(const struct cause *cause);

// The client's largest cause where most of what is to be explained is its own, and more than what
// neither side did: then a server is not judged by it. Else NULL.
const struct cause *run_clients_fault(const struct diagnosis *diagnosis);

#endif
