// SPDX-License-Identifier: MIT
//
// The options that select the requests to explain, the same for every command that has them:
// --slice and --message, any number of each, within --from and --to.
#ifndef ANALYSIS_DIAGNOSIS_SLICE_OPTIONS_H
#define ANALYSIS_DIAGNOSIS_SLICE_OPTIONS_H

#include "analysis/diagnosis/diagnosis.h"
#include "base/options.h"

struct slice_options {
    struct option_list slices, messages;
    uint64_t from_ns, to_ns;
};

// For the table of a command whose options struct holds a struct slice_options as `member`.
#define SLICE_OPTIONS(type, member)                                                                \
    OPTION_LIST("slice", 's', "SLICE", type, member.slices,                                        \
                "which requests to explain: p99-100, p20-p30, '>500us' (as the experiment says); " \
                "may be repeated"),                                                                \
        OPTION_LIST("message", 'm', "ID", type, member.messages,                                   \
                    "explain the request of this number; may be repeated"),                        \
        OPTION_DURATION("from", 0, "TIME", type, member.from_ns,                                   \
                        "only requests due this long after the first one, or later"),              \
        OPTION_DURATION("to", 0, "TIME", type, member.to_ns,                                       \
                        "only requests due earlier than this after the first one")

// The slices in the order given, then the messages; empty when no option was given. A window alone
// stands for the slowest percent in it. ERROR_INPUT names the option. The caller frees *out with
// array_free, also after an error.
int slice_options_read(const struct slice_options *options, struct diagnosis_slice_array *out,
                       struct error *err);
// Whether any was given: what is found then is a view, and not the run's own result.
bool slice_options_given(const struct slice_options *options);

void slice_options_free(struct slice_options *options);

#endif
