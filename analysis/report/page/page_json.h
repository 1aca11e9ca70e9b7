// SPDX-License-Identifier: MIT
//
// Building the page's JSON: numbers a browser can read (no infinities, whole nanoseconds), text
// that is safe to show, and one place that remembers when memory ran out, so that the builders
// need not check every call.
#ifndef ANALYSIS_REPORT_PAGE_PAGE_JSON_H
#define ANALYSIS_REPORT_PAGE_PAGE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/run/result_fields.h"

struct page_builder {
    const struct run_analysis *run;
    json_t *names;           // span names in use, as the page indexes them
    int32_t *name_page;      // server.names index -> index in names, -1: not used yet
    int64_t longest_life_ns; // from intended to reply, over the run
    bool failed;             // out of memory somewhere
};

// Both take over the value, which may be NULL (out of memory: recorded in the builder).
void page_put(struct page_builder *builder, json_t *object, const char *key, json_t *value);
void page_append(struct page_builder *builder, json_t *array, json_t *value);

// Whole nanoseconds; null for what is not finite or beyond what a browser counts exactly.
json_t *page_ns(double ns);
json_t *page_count(uint64_t count);
// Time since the run began.
json_t *page_since_begin(const struct page_builder *builder, int64_t host_ns);
json_t *page_text(const char *text);
// Words that were made for any terminal, with the sign that microseconds have on a page; `out`.
char *page_micro_signs(const char *text, char *out, size_t bytes);
// An object with the fields of a record that have a name on the page.
json_t *page_fields_build(struct page_builder *builder, const struct result_field *field,
                          const void *record);

// The parts of the document, each in its own file.
json_t *page_curve_build(struct page_builder *builder, bool corrected); // page_curve.c
json_t *page_heat_build(struct page_builder *builder); // page_heat.c; null: nothing was answered
// Of each part between two hops, by its place among the parts of `hops`.
json_t *page_hop_heats_build(struct page_builder *builder); // page_heat.c
json_t *page_diagnosis_build(struct page_builder *builder,
                             size_t number); // of run->findings.diagnoses
// What is beside causes in it: of the first `detailed` messages one by one; null: nothing
// (page_views.c).
json_t *page_views_build(struct page_builder *builder, const struct diagnosis *diagnosis,
                         size_t detailed);
json_t *page_timelines_build(struct page_builder *builder); // page_timeline.c
json_t *page_span_kinds(void); // of these: [label, colour, colour of text on it] by number
json_t *page_samples_build(struct page_builder *builder); // page_samples.c; null: none

#endif
