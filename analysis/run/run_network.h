// SPDX-License-Identifier: MIT
//
// What the server's machine counted of its network, in words for causes that it bears on: why
// connections could not be opened, and how many rules its firewall has for each packet.
#ifndef ANALYSIS_RUN_RUN_NETWORK_H
#define ANALYSIS_RUN_RUN_NETWORK_H

#include "analysis/run/run_analysis.h"

enum { NETWORK_WORDS_BYTES = 120 };

// ": a firewall on its machine dropped 12 segments of its connections"; "" where nothing was
// counted. Returns out.
char *run_refusal_words(const struct run_analysis *run, char out[NETWORK_WORDS_BYTES]);

// What helps against that, also where the server's machine counted nothing; NULL: nobody counted.
const char *run_refusal_helps(const struct run_analysis *run);

// ": its firewall has 4,002 rules"; "" where they are few, or not known. Returns out.
char *run_rules_words(const struct run_analysis *run, char out[NETWORK_WORDS_BYTES]);

#endif
