// SPDX-License-Identifier: MIT
#include "analysis/run/run_samples.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/run/input/run_recording.h"
#include "analysis/samples/sample_hints.h"
#include "base/text.h"

enum { FUNCTIONS_LISTED = 25 };

// Whether all samples were taken when the run was not.
static bool is_of_another_run(const struct sample_profile *profile, const struct clock_map *clock,
                              char problem[RUN_RECORDING_PROBLEM])
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t time = profile->samples.items[i].time_ns;
        first = time < first ? time : first;
        last = time > last ? time : last;
    }
    const int64_t apart =
        profile->samples.count
            ? clock_map_apart_ns(clock, HOST_CLOCK_RAW, (uint64_t)first, (uint64_t)last)
            : 0;
    if (apart)
        snprintf(problem, RUN_RECORDING_PROBLEM,
                 "its samples are of another run than server/clock.tlog, all of them at least %s "
                 "%s that: copy both from where they were",
                 TEXT_INSTANT((double)llabs(apart)), apart < 0 ? "before" : "after");
    return apart != 0;
}

int run_samples_add(const char *run_dir, const json_t *capture, const struct clock_map *clock,
                    const struct diagnosis_input *in, const struct diagnosis *diagnosis,
                    struct run_samples *out, struct error *err)
{
    struct run_recording recording;
    struct error unusable = {0};
    const json_t *said = json_object_get(capture, "samples");
    if (!run_recording_find(&recording, run_dir, capture, "samples", out->problem))
        return 0;
    out->frequency = (unsigned)json_integer_value(json_object_get(said, "frequency"));
    if (sample_profile_load(&out->profile, recording.path,
                            recording.symfs[0] ? recording.symfs : NULL, &unusable) < 0) {
        snprintf(out->problem, sizeof out->problem, "%.390s", unusable.text);
        return 0;
    }
    if (is_of_another_run(&out->profile, clock, out->problem)) {
        sample_profile_free(&out->profile);
        out->profile = (struct sample_profile){0};
        return 0;
    }
    out->present = true;
    if (in->server)
        sample_instants_settle(&out->profile, in->server);
    if (diagnosis && sample_hints_find(&out->profile, in, diagnosis, &out->hints) < 0)
        return error_set(err, ERROR_FAILED, "no memory for what the samples hint at");
    return 0;
}

void run_samples_free(struct run_samples *samples)
{
    sample_profile_free(&samples->profile);
    sample_hints_free(&samples->hints);
}

// --- as JSON -------------------------------------------------------------------------------------

static json_t *hint_json(const struct run_samples *samples, const struct sample_hint *hint)
{
    json_t *functions = hint->slice < SAMPLE_HINT_LEAST ? NULL : json_array();
    for (size_t i = 0; functions && i < hint->function_count; i++) {
        const struct hint_function *function = &hint->functions[i];
        json_array_append_new(functions,
                              json_pack("{s:s, s:I, s:I}", "function",
                                        samples->profile.names.items[function->name],
                                        "slice_samples", (json_int_t)function->slice,
                                        "reference_samples", (json_int_t)function->reference));
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:o}", "cause", hint->cause, "role",
                     role_name(hint->role), "slice_samples", (json_int_t)hint->slice,
                     "reference_samples", (json_int_t)hint->reference, "functions",
                     functions ? functions : json_null());
}

static json_t *functions_json(const struct sample_profile *profile)
{
    struct sample_functions functions = {0};
    json_t *list = json_array();
    if (sample_profile_functions(profile, &functions) < 0)
        functions.count = 0;
    for (size_t i = 0; i < functions.count && i < FUNCTIONS_LISTED; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "function",
                                              profile->names.items[functions.items[i].name], "self",
                                              (json_int_t)functions.items[i].self, "total",
                                              (json_int_t)functions.items[i].total));
    array_free(&functions);
    return list;
}

json_t *run_samples_json(const struct run_samples *samples)
{
    const struct sample_profile *profile = &samples->profile;
    if (samples->problem[0])
        return json_pack("{s:s}", "problem", samples->problem);
    if (!samples->present)
        return json_null();
    json_t *hints = json_array(), *notes = json_array();
    for (size_t i = 0; i < samples->hints.count; i++)
        json_array_append_new(hints, hint_json(samples, &samples->hints.items[i]));
    for (size_t i = 0; i < profile->notes.count; i++)
        json_array_append_new(notes, json_string(profile->notes.items[i]));
    return json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:o, s:o, s:o}", "event",
                     profile->event, "frequency", (int)samples->frequency, "samples",
                     (json_int_t)profile->samples.count, "lost", (json_int_t)profile->lost,
                     "throttled", (json_int_t)profile->throttled, "unnamed",
                     (json_int_t)profile->unnamed, "without_chain",
                     (json_int_t)profile->without_chain, "least", SAMPLE_HINT_LEAST,
                     "slice_messages", (json_int_t)samples->hints.slice_messages,
                     "reference_messages", (json_int_t)samples->hints.reference_messages, "hints",
                     hints, "functions", functions_json(profile), "notes", notes);
}

// --- in words ------------------------------------------------------------------------------------

static void hint_line(const struct run_samples *samples, const struct sample_hint *hint, char *out,
                      size_t out_bytes)
{
    text_append(out, out_bytes, "%s (%s), %s samples: ", hint->cause, role_name(hint->role),
                TEXT_COUNT(hint->slice));
    for (size_t i = 0; i < hint->function_count; i++) {
        const struct hint_function *function = &hint->functions[i];
        text_append(out, out_bytes, "%s%.60s %d %%", i ? ", " : "",
                    samples->profile.names.items[function->name],
                    text_whole_percent((double)function->slice, (double)hint->slice));
        if (hint->reference >= SAMPLE_HINT_LEAST)
            text_append(out, out_bytes, " (%d %%)",
                        text_whole_percent((double)function->reference, (double)hint->reference));
    }
}

static void without_line(const struct run_samples *samples, char *out, size_t out_bytes)
{
    size_t listed = 0;
    for (size_t i = 0; i < samples->hints.count; i++) {
        const struct sample_hint *hint = &samples->hints.items[i];
        if (hint->slice >= SAMPLE_HINT_LEAST)
            continue;
        if (listed == 0)
            text_append(out, out_bytes, "n/a, for fewer than %s samples",
                        TEXT_COUNT(SAMPLE_HINT_LEAST));
        text_append(out, out_bytes, "%s %s (%s) %s", listed++ ? "," : ":", hint->cause,
                    role_name(hint->role), TEXT_COUNT(hint->slice));
    }
}

char *run_samples_line(const struct run_samples *samples, size_t number, char *out,
                       size_t out_bytes)
{
    const struct sample_profile *profile = &samples->profile;
    out[0] = '\0';
    if (samples->problem[0] && number == 0)
        snprintf(out, out_bytes, "n/a: %s", samples->problem);
    else if (number > samples->hints.count && profile->damages)
        text_append(out, out_bytes, "not all of the recording could be read, in %s place%s: %s",
                    TEXT_COUNT(profile->damages), text_plural((double)profile->damages),
                    profile->notes.items[0]);
    else if (number == samples->hints.count)
        without_line(samples, out, out_bytes);
    else if (number < samples->hints.count &&
             samples->hints.items[number].slice >= SAMPLE_HINT_LEAST)
        hint_line(samples, &samples->hints.items[number], out, out_bytes);
    return out;
}
