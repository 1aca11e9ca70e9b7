// SPDX-License-Identifier: MIT
//
// Answers that one thread takes for others, as the event loop of a client library does whose only
// connection many threads share: it completes what each of them waits for, and so wakes it. Whoever
// it wakes and replies next had asked, in the order of the answers.
#ifndef ANALYSIS_LIFETIME_TOLD_ANSWERS_H
#define ANALYSIS_LIFETIME_TOLD_ANSWERS_H

#include "analysis/lifetime/peer_questions.h"

// Finds for whom the questions were of which the thread that asked them does not say it. -1: no
// memory.
int told_answers_find(const struct peer_questions_input *in, struct peer_questions *questions);

#endif
