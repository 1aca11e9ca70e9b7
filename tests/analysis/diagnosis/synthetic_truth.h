// SPDX-License-Identifier: MIT
//
// The truth about a random server (synthetic.h): which messages its causes come about at, from when
// to when each held up whom, and what that adds up to.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_TRUTH_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_TRUTH_H

#include "tests/analysis/diagnosis/synthetic_spans.h"

static inline bool synthetic_is_hit(const struct synthetic *s, size_t message,
                                    enum synthetic_cause cause)
{
    return s->hit[message] == cause + 1;
}

static inline void synthetic_held_up(struct synthetic *s, size_t message,
                                     enum synthetic_cause cause, int64_t begin, int64_t end)
{
    if (s->truth && end > begin)
        SYNTHETIC_PUSH(&s->hindrances,
                       (struct synthetic_hindrance){begin, end, (uint32_t)message, (uint8_t)cause});
}

// Chooses the messages each cause comes about at, well apart, and how long it lasts.
static inline void synthetic_choose(struct synthetic *s)
{
    const struct synthetic_options *o = &s->options;
    unsigned causes = (unsigned)__builtin_popcount(o->causes), total = causes * o->hits, at = 0;
    unsigned turn = 0;
    double size[SYNTHETIC_CHOSEN] = {0};
    double scale = 60000 + synthetic_uniform(s) * 400000;
    for (int cause = 0; cause < SYNTHETIC_CHOSEN; cause++)
        if (o->causes >> cause & 1) {
            size[cause] = scale;
            scale *= 0.35 + 0.3 * synthetic_uniform(s);
        }
    for (; at < total; at++) {
        do
            turn = (turn + 1) % SYNTHETIC_CHOSEN;
        while (!(o->causes >> turn & 1));
        unsigned spacing = o->messages / total;
        unsigned message = at * spacing + spacing / 4 + (unsigned)synthetic_below(s, spacing / 2);
        s->hit[message] = (uint8_t)(turn + 1);
        s->hit_ns[message] = (int64_t)(size[turn] * (0.8 + 0.4 * synthetic_uniform(s)));
    }
}

static inline int64_t synthetic_overlap(int64_t begin, int64_t end, int64_t from, int64_t to)
{
    int64_t low = begin > from ? begin : from, high = end < to ? end : to;
    return high > low ? high - low : 0;
}

// The turns of the messages ahead, as far as a message waited for them.
static inline void synthetic_ahead(struct synthetic *s)
{
    for (size_t i = 0; s->truth && i < s->lives.count; i++) {
        const struct lifetime *life = &s->lives.items[i];
        int64_t since = life->stamp_ns[STAMP_HANDOFF];
        for (size_t k = i; k-- > 0 && s->turns[k].end > since;) {
            const struct synthetic_turn *turn = &s->turns[k];
            bool same = s->connection[s->lives.items[k].request] == s->connection[life->request];
            int64_t from = since > turn->begin ? since : turn->begin;
            enum synthetic_cause cause = same ? CAUSED_BY_AHEAD_SAME : CAUSED_BY_AHEAD_A;
            synthetic_held_up(s, life->request, cause, from, turn->stopped);
            synthetic_held_up(s, life->request, cause, from > turn->resumed ? from : turn->resumed,
                              turn->end);
        }
    }
}

// Adds up what held the messages up, in all and in each of their lifetimes.
static inline void synthetic_sum(struct synthetic *s)
{
    uint32_t *place = calloc(s->lives.count + 1, sizeof *place);
    if (!place)
        abort();
    for (size_t i = 0; i < s->lives.count; i++)
        place[s->lives.items[i].request] = (uint32_t)i;
    for (size_t i = 0; i < s->hindrances.count; i++) {
        const struct synthetic_hindrance *one = &s->hindrances.items[i];
        const struct lifetime *life = &s->lives.items[place[one->message]];
        struct synthetic_truth *truth = &s->truth[one->message];
        truth->ns[PART_WHOLE][one->cause] += (float)(one->end - one->begin);
        for (int part = PART_WHOLE + 1; part < PARTS; part++)
            truth->ns[part][one->cause] += (float)synthetic_overlap(
                one->begin, one->end, life->stamp_ns[lifetime_part_begin((enum lifetime_part)part)],
                life->stamp_ns[lifetime_part_end((enum lifetime_part)part)]);
    }
    free(place);
}

#endif
