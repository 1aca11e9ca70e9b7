// SPDX-License-Identifier: MIT
//
// The findings in two or three sentences for somebody who knows nothing of Taillight: how slow,
// why, and what to do. The terminal, the page and summary.json have them from here.
#ifndef ANALYSIS_RUN_LEDE_H
#define ANALYSIS_RUN_LEDE_H

#include <stdio.h>

#include "analysis/run/run_analysis.h"

enum { LEDE_BYTES = 2000, CAUSE_WORDS_BYTES = 700, LEDE_REMEDY_BYTES = 300 };

struct run_lede {
    // "1 in 100 requests took 3.80 ms or more (usually 53.2 us). For 78 % of that extra time
    // another program, `yes`, had memcached's CPU core."; "Nothing stands out: ..." with how much
    // the largest small things add; "Inconclusive: ..." where the run is.
    char text[LEDE_BYTES];
    // What helps against what was named first, a cause ("Keep other programs off ...") or why the
    // load cannot be trusted; "": nothing known.
    char remedy[LEDE_REMEDY_BYTES];
};

// From a complete analysis. Names in it are clean (text_clean).
void run_lede(const struct run_analysis *run, struct run_lede *out);

// Writes the first sentence, a line, where the run is inconclusive: whoever prints no summary would
// leave that to the exit code.
void run_lede_write_doubt(const struct run_analysis *run, FILE *out);

// What a cause's time was, as a clause (`happened` of remedies.tbl.h): "another program, `yes`, had
// memcached's CPU core". There {server} is the server's name where there is one server, {core} the
// core on which it was, also as other causes that are the same to a reader, {cause} the cause's
// name in quotes, {group} the control group that it names (run_groups.h), {refusal} why
// connections could not be opened, {rules} how many a firewall has (run_network.h); a function is
// named after the clause. Returns out.
char *run_cause_words(const struct run_analysis *run, const struct cause_array *causes,
                      size_t index, char out[CAUSE_WORDS_BYTES]);

// What helps against a cause, by its category and by what the run has seen of it: the server's own
// code is looked into by samples or by a trace, and where that was done, it is not to be done
// again. Never NULL; "" where nothing is known.
const char *run_what_helps(const struct run_analysis *run, const struct cause *cause);

// What a reader takes for one cause: those of the same name and category on the core that received
// and on the one that served.
struct named_cause {
    const struct cause *cause; // the largest of them; the diagnosis's
    size_t index;              // its place there
    double total_ns;           // of all of them
    bool several;              // of several names, told in the same words (run_causes_by_words)
};

enum whose_causes {
    ALL_CAUSES,
    CLIENTS_CAUSES, // run_cause_is_client
    CAUSES_APART,   // what the tool or a virtual machine's host did
    OTHER_CAUSES,   // than these
};

// The largest `most` of them; returns how many there are.
size_t run_named_causes(const struct diagnosis *diagnosis, enum whose_causes whose,
                        struct named_cause *out, size_t most);

// The same, with those that are told in the same words as one, as requests behind others of their
// own connection and behind those of others are: the share that is said of these words is that of
// all of them, in the first sentences as in the page's bar.
size_t run_causes_by_words(const struct run_analysis *run, const struct diagnosis *diagnosis,
                           enum whose_causes whose, struct named_cause *out, size_t most);

#endif
