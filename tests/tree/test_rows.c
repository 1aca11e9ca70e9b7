// SPDX-License-Identifier: MIT
//
// No row of a vocabulary has an empty text, rows that speak of one thing agree, and no protocol
// lacks a member. (A row that is too short does not compile; kinds of hosts, servers and backends:
// tests/experiments/definition/test_kinds.c.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/protocols/http2_session.h"
#include "workloads/protocols/protocols.h"

static void filled(const char *row, const char *member, const char *text)
{
    if (!text || !text[0])
        fail_msg("%s: its `%s` is missing", row, member);
}

static void vocabularies_are_whole(void **state)
{
    (void)state;
#define EVENT(NAME, number, name, becomes, carries, means)                                         \
    filled("EVENT " #NAME, "name", name);                                                          \
    filled("EVENT " #NAME, "becomes", #becomes);                                                   \
    filled("EVENT " #NAME, "carries", carries);                                                    \
    filled("EVENT " #NAME, "means", means);
#define EVENT_VECTOR(NAME, number, name) filled("EVENT_VECTOR " #NAME, "name", name);
#define EVENT_LOSS(NAME, number, words)  filled("EVENT_LOSS " #NAME, "words", words);
#define EVENT_PROGRAM(name, GROUP, iterator, gives, stand_in)                                      \
    filled("EVENT_PROGRAM " #name, "gives", gives);
#include "profiler/bpf/events.tbl.h"
#define SPAN_KIND(NAME, number, word, label, colour, ink, means)                                   \
    filled("SPAN_KIND " #NAME, "word", word);                                                      \
    filled("SPAN_KIND " #NAME, "label", label);                                                    \
    filled("SPAN_KIND " #NAME, "means", means);                                                    \
    if (!colour != !ink)                                                                           \
        fail_msg("SPAN_KIND " #NAME ": a colour and that of text on it, or none");
#include "analysis/timeline/span_kinds.tbl.h"
#define CAUSE_CLASS(NAME, name, means)                                                             \
    filled("CAUSE_CLASS " #NAME, "name", name);                                                    \
    filled("CAUSE_CLASS " #NAME, "means", means);
#define COMPONENT(NAME, name, ROLE, CLASS, explains, functions, category, means)                   \
    filled("COMPONENT " #NAME, "name", name);                                                      \
    filled("COMPONENT " #NAME, "category", category);                                              \
    filled("COMPONENT " #NAME, "means", means);
#include "analysis/decomposition/causes.tbl.h"
#define BUDGET_STATE(NAME, name, busy, colour, means)                                              \
    filled("BUDGET_STATE " #NAME, "name", name);                                                   \
    filled("BUDGET_STATE " #NAME, "colour", colour);                                               \
    filled("BUDGET_STATE " #NAME, "means", means);
#include "analysis/diagnosis/time_budget.tbl.h"
#define REMEDY(category, expected, happened, helps)                                                \
    filled("REMEDY", "category", category);                                                        \
    filled("REMEDY " category, "happened", happened);                                              \
    filled("REMEDY " category, "helps", helps);
#include "analysis/diagnosis/remedies.tbl.h"
#define STAMP(NAME, name, stage, ROLE, means)                                                      \
    filled("STAMP " #NAME, "name", name);                                                          \
    filled("STAMP " #NAME, "means", means);
#define LIFETIME_STATE(NAME, words, means)                                                         \
    filled("LIFETIME_STATE " #NAME, "words", words);                                               \
    filled("LIFETIME_STATE " #NAME, "means", means);
#define JOIN_COUNT(name, means) filled("JOIN_COUNT " #name, "means", means);
#include "analysis/lifetime/lifetimes.tbl.h"
}

// A component that no event gives its time would stay empty without a word.
static void event_components_have_an_event(void **state)
{
    (void)state;
    static const char *const becomes[] = {
#define EVENT(NAME, number, name, becomes, carries, means) #becomes,
#include "profiler/bpf/events.tbl.h"
    };
    static const char *const wanted[] = {
#define EVENT_COMPONENT(KIND, name) "lasted(" #KIND ", " #name ")",
#include "profiler/bpf/events.tbl.h"
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        size_t at = 0, events = sizeof becomes / sizeof *becomes;
        while (at < events && strcmp(becomes[at], wanted[i]) != 0)
            at++;
        if (at == events)
            fail_msg("no EVENT becomes %s, as an EVENT_COMPONENT says", wanted[i]);
    }
}

// A life's stage and the component that is nothing but that stage stand in two tables, one floor
// apart: whoever reads both must find the same words and the same role.
static void stages_are_called_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *name, *role;
    } stages[] = {
#define STAMP(NAME, name, stage, ROLE, means) {stage, #ROLE},
#include "analysis/lifetime/lifetimes.tbl.h"
    };
    static const struct {
        const char *name, *role, *class;
    } components[] = {
#define COMPONENT(NAME, name, ROLE, CLASS, explains, functions, category, means)                   \
    {name, #ROLE, #CLASS},
#include "analysis/decomposition/causes.tbl.h"
    };
    size_t found = 0;
    for (size_t i = 0; i < sizeof components / sizeof *components; i++) {
        if (strcmp(components[i].class, "STAGE") != 0 ||
            strcmp(components[i].name, "network (both ways)") == 0) // of two stages together
            continue;
        size_t at = 0, count = sizeof stages / sizeof *stages;
        while (at < count && (strcmp(stages[at].name, components[i].name) != 0 ||
                              strcmp(stages[at].role, components[i].role) != 0))
            at++;
        if (at == count)
            fail_msg("COMPONENT %s (%s): no STAMP ends a stage of that name and role",
                     components[i].name, components[i].role);
        found++;
    }
    assert_true(found >= 5);
}

static void protocols_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROTOCOLS; i++) {
        const struct protocol *protocol = protocols[i];
        filled("a protocol", "name", protocol->name);
        filled(protocol->name, "speaks", protocol->speaks);
        filled(protocol->name, "replies", protocol->replies);
        const bool judges =
            protocol->header_bytes ? protocol->judge_header != NULL : protocol->judge_line != NULL;
        const bool takes_apart = protocol->take || (protocol->end_data && judges);
        const struct http2_dialect *http2 = protocol->http2;
        const bool both_ways =
            http2 ? http2->methods && http2->path && http2->headers && http2->body && http2->judge
                  : protocol->encode && takes_apart;
        if (!protocol->request_bytes_max || !both_ways || !protocol->answers)
            fail_msg("%s: a function is missing", protocol->name);
        assert_in_range(protocol->operation_count, 1, PROTOCOL_OPERATIONS_MAX);
        for (unsigned k = 0; k < protocol->operation_count; k++)
            filled(protocol->name, "operations[].name", protocol->operations[k].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabularies_are_whole),
        cmocka_unit_test(event_components_have_an_event),
        cmocka_unit_test(stages_are_called_the_same),
        cmocka_unit_test(protocols_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
