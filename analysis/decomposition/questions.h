// SPDX-License-Identifier: MIT
//
// What a server asked others for a message where only the kernel saw that (struct server_question),
// as of programs in Go: those go on with a message in whichever thread is free, so a thread's own
// calls do not tell for which one it asked.
#ifndef ANALYSIS_DECOMPOSITION_QUESTIONS_H
#define ANALYSIS_DECOMPOSITION_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/diagnosis_input.h"
#include "base/connection_text.h"

struct asked_time {
    int64_t begin_ns, end_ns; // within the time that was asked about
    char whom[CONNECTION_TEXT_BYTES];
};

// The first time within [begin_ns, end_ns) in which another server had been asked for the message
// and had not answered. It was for that message if the last that the thread which asked had done
// with clients was to read this request, or the next that the one does which took the answer is to
// send this reply. False: none is known.
bool question_for(const struct diagnosis_input *in, const struct lifetime *life, int64_t begin_ns,
                  int64_t end_ns, struct asked_time *asked);

// The same where nobody knows for which message the thread had asked, as where several wait for one
// name's address: a time of its sleep in which everything that it had asked and not been answered
// was of one other server, whose answer it takes itself.
bool question_only(const struct diagnosis_input *in, const struct lifetime *life, uint32_t thread,
                   int64_t begin_ns, int64_t end_ns, struct asked_time *asked);

// Until when the message waited for a connection to another server, and for how many: it was asked
// for on one of them at last, that had been asked something for others until then.
struct taken_time {
    int64_t end_ns;
    unsigned count;
    char whom[CONNECTION_TEXT_BYTES];
};

// Whether all connections of the process to the server that was asked for the message had been
// taken when the message wanted one, from begin_ns on. False: not so, or nobody knows.
bool question_for_want_of(const struct diagnosis_input *in, const struct lifetime *life,
                          int64_t begin_ns, int64_t end_ns, struct taken_time *taken);

#endif
