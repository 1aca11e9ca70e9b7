// SPDX-License-Identifier: MIT
//
// The diagnosis of one slice: which messages of the window belong to it, whether there is enough
// evidence, what is normal, and what made the difference.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/attribution.h"
#include "analysis/decomposition/components.h"
#include "analysis/decomposition/decompose.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/ordinary.h"
#include "analysis/diagnosis/reference.h"
#include "analysis/diagnosis/rhythm.h"
#include "analysis/diagnosis/views_build.h"
#include "analysis/diagnosis/walk_budget.h"
#include "base/array.h"
#include "base/quantile.h"
#include "base/text.h"

static bool is_explained(const struct diagnosis_slice *slice, const struct lifetime *life)
{
    return !life->load && !(slice->of_application && life->application != slice->application);
}

static bool in_window(const struct diagnosis_slice *slice, const struct lifetime *life)
{
    int64_t at = life->stamp_ns[STAMP_INTENDED];
    if (!is_explained(slice, life) || life->earlier)
        return false;
    return slice->from_ns == slice->to_ns || (at >= slice->from_ns && at < slice->to_ns);
}

// Finds the window's whole lifetimes and the slice's bounds of latency. The bounds count every
// message of the window, even without a whole lifetime or an answer.
static int survey_window(const struct diagnosis_input *in, struct diagnosis *out,
                         struct lifetime_indices *candidates)
{
    size_t count = 0;
    double *latencies = malloc((in->lifetime_count + 1) * sizeof *latencies);
    if (!latencies)
        return -1;
    for (size_t i = 0; i < in->lifetime_count; i++) {
        const struct lifetime *life = &in->lifetimes[i];
        if (!in_window(&out->slice, life))
            continue;
        double took = lifetime_part_ns(life, in->part);
        if (in->part == PART_WHOLE || (life->state == LIFETIME_WHOLE && !isnan(took)))
            latencies[count++] = took;
        if (life->state == LIFETIME_WHOLE && isnan(took)) {
            out->without_part++;
        } else if (life->state == LIFETIME_WHOLE) {
            if (array_push(candidates, (uint64_t)i) < 0) {
                free(latencies);
                return -1;
            }
        } else if (life->state < LIFETIME_STATES) {
            out->left_out[life->state]++;
        }
    }
    quantile_sort(latencies, count);
    out->candidates = candidates->count;
    if (count) {
        size_t low = (size_t)floor(out->slice.low * (double)count);
        size_t high = (size_t)ceil(out->slice.high * (double)count);
        out->slice_low_ns = latencies[low < count ? low : count - 1];
        out->slice_high_ns = latencies[high > 0 ? high - 1 : 0];
        if (out->slice_low_ns < out->slice.min_latency_ns)
            out->slice_low_ns = out->slice.min_latency_ns;
    }
    free(latencies);
    return 0;
}

static int slowest_first(const void *left, const void *right, void *context)
{
    const struct diagnosis_input *in = context;
    const struct diagnosed_message *a = left, *b = right;
    double one = lifetime_part_ns(&in->lifetimes[a->lifetime], in->part);
    double other = lifetime_part_ns(&in->lifetimes[b->lifetime], in->part);
    return order_of(other, one) ?: order_of(a->lifetime, b->lifetime);
}

// Some seconds of work.
#define MOST_PIECES 1e7
enum { LEAST_WALKED = 20 };

// Leaves as many of the messages as can be walked along.
static void thin_messages(const struct diagnosis_input *in, struct diagnosis *out)
{
    struct diagnosed_array *messages = &out->messages;
    const size_t all = messages->count;
    double ns = 0;
    for (size_t i = 0; i < all; i++)
        ns += lifetime_part_ns(&in->lifetimes[messages->items[i].lifetime], in->part);
    messages->count = walk_budget(in, MOST_PIECES, ns, all, LEAST_WALKED);
    for (size_t i = 0; i < messages->count; i++)
        messages->items[i] = messages->items[i * all / messages->count];
    out->passed_over = all - messages->count;
}

static int pick_messages(const struct diagnosis_input *in, struct diagnosis *out,
                         const struct lifetime_indices *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        double latency = lifetime_part_ns(&in->lifetimes[candidates->items[i]], in->part);
        if (out->slice.one && in->lifetimes[candidates->items[i]].request != out->slice.request)
            continue;
        if (latency < out->slice_low_ns || latency > out->slice_high_ns ||
            latency < out->slice.min_latency_ns)
            continue;
        if (array_push(&out->messages,
                       (struct diagnosed_message){.lifetime = candidates->items[i]}) < 0)
            return -1;
    }
    if (out->messages.count)
        qsort_r(out->messages.items, out->messages.count, sizeof *out->messages.items,
                slowest_first, (void *)(uintptr_t)in);
    thin_messages(in, out);
    if (out->slice.one && out->messages.count)
        out->slice_low_ns = out->slice_high_ns =
            lifetime_part_ns(&in->lifetimes[out->messages.items->lifetime], in->part);
    return 0;
}

// Those that were answered before all that is looked at are compared with, too, behind the others.
static int add_earlier(const struct diagnosis_input *in, struct diagnosis *out,
                       struct lifetime_indices *candidates)
{
    if (out->slice.from_ns != out->slice.to_ns)
        return 0;
    for (size_t i = 0; i < in->lifetime_count; i++) {
        const struct lifetime *life = &in->lifetimes[i];
        if (!life->earlier || !is_explained(&out->slice, life) || life->state != LIFETIME_WHOLE ||
            isnan(lifetime_part_ns(life, in->part)))
            continue;
        if (array_push(candidates, (uint64_t)i) < 0)
            return -1;
        out->earlier++;
    }
    return 0;
}

// Explains why the one request that was asked for is not among the candidates.
static void why_not_followed(const struct diagnosis_input *in, struct diagnosis *out)
{
    const struct lifetime *life = NULL;
    unsigned long long number = out->slice.request;
    for (size_t i = 0; i < in->lifetime_count && !life; i++)
        if (in->lifetimes[i].request == out->slice.request)
            life = &in->lifetimes[i];
    if (life && in_window(&out->slice, life))
        snprintf(out->reason, sizeof out->reason, "request %llu could not be followed (%s)", number,
                 lifetime_state_name((enum lifetime_state)life->state));
    else
        snprintf(out->reason, sizeof out->reason, "request %llu %s", number,
                 life ? "was not due in this window" : "is not in this run");
}

// Says why no verdict is possible; leaves not_available false where one is. Returns whether the
// window's messages can be taken apart: without any of the slice's, what ordinary ones are made of
// is still known.
static bool judge_evidence(const struct diagnosis_input *in, struct diagnosis *out)
{
    uint64_t missing = out->without_part, worst = LIFETIME_NO_CONNECTION;
    for (uint64_t state = LIFETIME_NO_CONNECTION; state < LIFETIME_STATES; state++) {
        missing += out->left_out[state];
        if (out->left_out[state] > out->left_out[worst])
            worst = state;
    }
    uint64_t answered = out->candidates + missing;
    double joined = answered ? (double)out->candidates / (double)answered : 0;
    out->not_available = true;
    if (answered == 0)
        snprintf(out->reason, sizeof out->reason, "no request of the window was answered");
    else if (!in->server)
        snprintf(out->reason, sizeof out->reason,
                 "no kernel events were captured on the server, so nobody saw what its cores did");
    else if (joined < DIAGNOSIS_MIN_JOINED)
        snprintf(out->reason, sizeof out->reason,
                 "only %s of the answered requests could be followed, %s are needed "
                 "(most often: %s)",
                 TEXT_SHARE(joined, 1), TEXT_SHARE(DIAGNOSIS_MIN_JOINED, 1),
                 out->without_part > out->left_out[worst]
                     ? "a stamp of this part is missing"
                     : lifetime_state_name((enum lifetime_state)worst));
    else if (out->candidates + out->earlier < DIAGNOSIS_MIN_CANDIDATES && out->earlier)
        snprintf(out->reason, sizeof out->reason,
                 "only %s requests of the window and %s before it could be followed, %d are needed",
                 TEXT_COUNT(out->candidates), TEXT_COUNT(out->earlier), DIAGNOSIS_MIN_CANDIDATES);
    else if (out->candidates + out->earlier < DIAGNOSIS_MIN_CANDIDATES)
        snprintf(out->reason, sizeof out->reason,
                 "only %s requests of the window could be followed, %d are needed",
                 TEXT_COUNT(out->candidates), DIAGNOSIS_MIN_CANDIDATES);
    else if (in->dropped_share > DIAGNOSIS_MAX_DROPPED)
        snprintf(out->reason, sizeof out->reason,
                 "%s of the capture's records were dropped, at most %s may be",
                 TEXT_SHARE(in->dropped_share, 1), TEXT_SHARE(DIAGNOSIS_MAX_DROPPED, 1));
    else {
        out->not_available = out->messages.count == 0;
        if (out->not_available && out->slice.one)
            why_not_followed(in, out);
        else if (out->not_available)
            snprintf(out->reason, sizeof out->reason,
                     "no request of the slice could be followed (%s were never answered)",
                     TEXT_COUNT(out->left_out[LIFETIME_UNANSWERED]));
        return true;
    }
    return false;
}

static int explain_slice(const struct diagnosis_input *in, struct diagnosis *out,
                         const struct lifetime_indices *candidates)
{
    struct component_table table;
    struct decomposer decomposer;
    struct reference_set references = {0};
    struct categories own = {0};
    struct error err = {0};
    int loaded = in->categories ? 0 : categories_init(&own, &err);
    int result = component_table_init(&table, in->server, in->client,
                                      in->categories ? in->categories : &own);
    if (loaded < 0)
        result = -1;
    decomposer_init(&decomposer, in, &table);
    if (result == 0)
        result =
            reference_set_build(&references, &decomposer, candidates->items, candidates->count);
    if (result == 0) {
        out->reference_count = references.pooled.count;
        out->reference_taken = references.pooled.taken;
        out->reference_latency_ns = references.pooled.latency_ns;
        result = attribute(out, &decomposer, &references);
        if (result == 0)
            result = ordinary_build(&out->ordinary, &references.pooled, &table);
    }
    reference_set_free(&references);
    decomposer_fini(&decomposer);
    component_table_fini(&table);
    categories_free(&own);
    return result;
}

// --- when causes came ----------------------------------------------------------------------------

// A message counts for a cause that made at least this share of what it took longer.
#define SHAPING_SHARE 0.3
enum { SHAPED_CAUSES = 5 };

static void window_of(const struct diagnosis_input *in, const struct diagnosis_slice *slice,
                      int64_t *begin_ns, int64_t *end_ns)
{
    *begin_ns = slice->from_ns, *end_ns = slice->to_ns;
    if (*begin_ns != *end_ns)
        return;
    *begin_ns = INT64_MAX, *end_ns = INT64_MIN;
    for (size_t i = 0; i < in->lifetime_count; i++) {
        int64_t at = in->lifetimes[i].stamp_ns[STAMP_INTENDED];
        if (in->lifetimes[i].load || in->lifetimes[i].earlier ||
            !lifetime_has(&in->lifetimes[i], STAMP_INTENDED))
            continue;
        *begin_ns = at < *begin_ns ? at : *begin_ns;
        *end_ns = at > *end_ns ? at : *end_ns;
    }
}

static size_t messages_of_cause(const struct diagnosis_input *in, const struct diagnosis *of,
                                uint32_t cause, struct rhythm_message *out)
{
    size_t count = 0, message = 0;
    for (size_t i = 0; i < of->attributions.count; i++) {
        const struct attribution *one = &of->attributions.items[i];
        const struct lifetime *life = &in->lifetimes[one->lifetime];
        while (message < of->messages.count &&
               of->messages.items[message].lifetime != one->lifetime)
            message++;
        if (message == of->messages.count)
            break;
        if (one->cause == cause &&
            (double)one->ns >= SHAPING_SHARE * of->messages.items[message].deviation_ns)
            out[count++] = (struct rhythm_message){life->stamp_ns[STAMP_INTENDED],
                                                   life->stamp_ns[STAMP_REPLY_READ]};
    }
    return count;
}

// The shape in time of the largest causes, where the slice is of slow messages.
static int shape_causes(const struct diagnosis_input *in, struct diagnosis *out)
{
    int64_t begin_ns, end_ns;
    int result = 0;
    if (in->part != PART_WHOLE || out->slice.one || out->slice.high < 1)
        return 0;
    struct rhythm_message *messages = malloc((out->messages.count + 1) * sizeof *messages);
    if (!messages)
        return -1;
    window_of(in, &out->slice, &begin_ns, &end_ns);
    for (uint32_t c = 0; c < out->causes.count && c < SHAPED_CAUSES && result == 0; c++) {
        struct cause *cause = &out->causes.items[c];
        struct rhythm rhythm;
        size_t count = messages_of_cause(in, out, c, messages);
        result = rhythm_find(&rhythm, messages, count, begin_ns, end_ns);
        rhythm_words(&rhythm, begin_ns, cause->shape, sizeof cause->shape);
    }
    free(messages);
    return result;
}

int diagnosis_pick(const struct diagnosis_input *input, const struct diagnosis_slice *slice,
                   struct diagnosis *out, struct lifetime_indices *candidates, struct error *err)
{
    *out = (struct diagnosis){.slice = *slice,
                              .part = input->part,
                              .granularity_ns = input->granularity_ns,
                              .reference_latency_ns = NAN,
                              .coverage_median = NAN,
                              .coverage_min = NAN,
                              .coverage_total = NAN};
    if (survey_window(input, out, candidates) == 0 && pick_messages(input, out, candidates) == 0)
        return 0;
    return error_set(err, ERROR_FAILED,
                     "no memory to diagnose %s requests: choose a narrower slice or window",
                     TEXT_COUNT(input->lifetime_count));
}

int diagnose(const struct diagnosis_input *input, const struct diagnosis_slice *slice,
             struct diagnosis *out, struct error *err)
{
    struct lifetime_indices candidates = {0};
    int result = diagnosis_pick(input, slice, out, &candidates, err);
    if (result == 0) {
        bool failed = add_earlier(input, out, &candidates) < 0;
        if (judge_evidence(input, out) && !failed)
            failed = explain_slice(input, out, &candidates) < 0;
        if (!failed && !out->not_available)
            failed = shape_causes(input, out) < 0 ||
                     (input->part == PART_WHOLE && !input->without_views &&
                      views_build(input, candidates.items, candidates.count, out) < 0);
        if (failed)
            result = error_set(err, ERROR_FAILED,
                               "no memory to explain %s requests: choose a narrower slice or "
                               "window",
                               TEXT_COUNT(out->messages.count));
    }
    array_free(&candidates);
    if (result < 0)
        diagnosis_free(out);
    return result;
}

void diagnosis_free(struct diagnosis *diagnosis)
{
    array_free(&diagnosis->messages);
    array_free(&diagnosis->causes);
    array_free(&diagnosis->attributions);
    array_free(&diagnosis->ordinary);
    views_free(&diagnosis->views);
}

// --- what measuring costs ------------------------------------------------------------------------

// Of docs/performance.md, "The shim, call by call".
#define SHIM_CALL_NS 35.0
// No program takes that long, nor runs that often: what says so is damaged.
#define PROGRAM_MOST_NS   1e6
#define PROGRAM_MOST_RUNS 1e15

static double add_program(const json_t *programs, const char *name, double *runs)
{
    const json_t *program = json_object_get(programs, name);
    double count = json_number_value(json_object_get(program, "runs"));
    double mean = json_number_value(json_object_get(program, "mean_ns"));
    if (!(count > 0 && count <= PROGRAM_MOST_RUNS) || !(mean > 0 && mean <= PROGRAM_MOST_NS))
        return 0;
    *runs += count;
    return count * mean;
}

static double mean_of(const json_t *programs, const char *const *names, size_t count)
{
    double ns = 0, runs = 0;
    for (size_t i = 0; i < count; i++)
        ns += add_program(programs, names[i], &runs);
    return runs > 0 ? ns / runs : 0;
}

// A program that did not run while the sample was taken takes what others do.
static double cost_of(const json_t *programs, const char *name, double others_ns)
{
    const json_t *attached = json_object_get(json_object_get(programs, name), "attached");
    double ns = mean_of(programs, &name, 1);
    return ns > 0 ? ns : json_is_true(attached) ? others_ns : 0;
}

struct overhead overhead_of_capture(const json_t *capture, bool shim)
{
    static const char *const records[] = {"sched_switch",
                                          "irq_handler_entry",
                                          "irq_handler_exit",
                                          "softirq_entry",
                                          "softirq_exit",
                                          "local_timer_entry",
                                          "local_timer_exit",
                                          "reschedule_entry",
                                          "reschedule_exit",
                                          "call_function_single_entry",
                                          "call_function_single_exit"};
    static const char *const call[] = {"tcp_sendmsg_locked", "sock_send_length"};
    static const char *const packet[] = {"tcp_probe", "sk_data_ready", "sched_waking"};
    const json_t *programs = json_object_get(json_object_get(capture, "events"), "programs");
    struct overhead overhead = {.record_ns =
                                    mean_of(programs, records, sizeof records / sizeof *records),
                                .call_ns = shim ? SHIM_CALL_NS : 0};
    for (size_t i = 0; i < sizeof packet / sizeof *packet; i++)
        overhead.packet_ns += cost_of(programs, packet[i], overhead.record_ns);
    for (size_t i = 0; i < sizeof call / sizeof *call && !shim; i++)
        overhead.call_ns += cost_of(programs, call[i], overhead.record_ns);
    return overhead;
}
