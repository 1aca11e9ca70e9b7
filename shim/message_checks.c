// SPDX-License-Identifier: MIT
#include "shim/message_checks.h"

#include <stdbool.h>

// A comparison that did not come out even and was not followed by one that did.
struct doubt {
    uint32_t identity;
    uint32_t direction;
    bool ahead;       // of two counts: the kernel's is the higher one
    uint64_t counted; // by the shim
};
struct doubt_array ARRAY_OF(struct doubt);

struct finding {
    uint32_t identity;
    const struct ring_check *check;
};
struct finding_array ARRAY_OF(struct finding);

static int finding_compare(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    return order_of(a->identity, b->identity) ?: order_of(a->check->tsc, b->check->tsc);
}

static int findings_gather(struct ring_reader *const *rings, size_t count,
                           const struct identity_array *identities, struct finding_array *out)
{
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < rings[r]->checks.count; i++) {
            const struct ring_check *check = &rings[r]->checks.items[i];
            const struct identity *identity =
                identity_find(identities, rings[r], check->connection);
            if (!identity)
                continue; // and nor are its calls in the log
            struct finding finding = {(uint32_t)(identity - identities->items), check};
            if (array_push(out, finding) < 0)
                return -1;
        }
    array_sort(out, finding_compare);
    return 0;
}

// Goes along the comparisons of one connection in one direction. What agrees in the end has agreed
// all the time: bytes that are missing do not come back, but a thread may be in between.
static int direction_judge(const struct finding *findings, size_t count, unsigned direction,
                           struct identity *identity, struct message_checks *out,
                           struct doubt_array *doubts)
{
    const struct ring_check *bad = NULL;
    uint64_t agreed_tsc = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ring_check *check = findings[i].check;
        if (!check->other && !(check->directions >> direction & 1))
            continue;
        bool agrees = !check->other && check->counted[direction] == check->kernel[direction];
        out->made++;
        out->agreed += agrees;
        identity->counted[direction] = check->counted[direction];
        bad = agrees ? NULL : bad ? bad : check;
        agreed_tsc = agrees ? check->tsc : agreed_tsc;
    }
    if (!bad)
        return 0;
    identity->until_tsc[direction] = agreed_tsc;
    struct doubt doubt = {.identity = findings->identity,
                          .direction = direction,
                          .ahead = !bad->other && bad->kernel[direction] > bad->counted[direction],
                          .counted = bad->counted[direction]};
    return array_push(doubts, doubt);
}

// --- sockets of several processes ----------------------------------------------------------------

// Where the calls of an identity begin, by direction; UINT64_MAX: it has none.
struct extent {
    uint64_t first[2];
};

static struct extent *extents_find(struct ring_reader *const *rings, size_t count,
                                   const struct identity_array *identities)
{
    struct extent *extents = malloc((identities->count + 1) * sizeof *extents);
    for (size_t i = 0; extents && i < identities->count; i++)
        for (unsigned d = 0; d < 2; d++) // "none" becomes the greatest number
            extents[i].first[d] = identities->items[i].first[d] - 1;
    for (size_t r = 0; extents && r < count; r++)
        for (size_t i = 0; i < rings[r]->calls.count; i++) {
            const struct call *call = &rings[r]->calls.items[i];
            if (call->kind != CALL_RECEIVE && call->kind != CALL_SEND)
                continue;
            const struct identity *one = identity_find(identities, rings[r], call->connection);
            if (!one)
                continue;
            uint64_t *first = &extents[one - identities->items].first[call->kind == CALL_SEND];
            *first = call->offset < *first ? call->offset : *first;
        }
    return extents;
}

// A process that hands a connection on knows nothing of what moves afterwards, and nothing is wrong
// as long as whoever has it now went on from there.
static bool was_handed_on(const struct doubt *doubt, const struct identity_array *identities,
                          const struct extent *extents)
{
    uint64_t cookie = identities->items[doubt->identity].announcement.cookie;
    bool found = false;
    for (size_t i = 0; doubt->ahead && cookie && i < identities->count; i++) {
        uint64_t first = extents[i].first[doubt->direction];
        if (i == doubt->identity || identities->items[i].announcement.cookie != cookie ||
            first == UINT64_MAX)
            continue;
        if (first < doubt->counted)
            return false;
        found = true;
    }
    return found;
}

static int doubts_settle(struct ring_reader *const *rings, size_t count,
                         struct identity_array *identities, const struct doubt_array *doubts,
                         struct message_checks *out)
{
    struct extent *extents = doubts->count ? extents_find(rings, count, identities) : NULL;
    if (doubts->count && !extents)
        return -1;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < doubts->count; i++) {
        const struct doubt *doubt = &doubts->items[i];
        struct identity *identity = &identities->items[doubt->identity];
        if (was_handed_on(doubt, identities, extents)) {
            identity->until_tsc[doubt->direction] = UINT64_MAX;
            continue;
        }
        if (identity->id == 0)
            continue; // of no interest
        out->directions++;
        out->doubtful += doubt->identity != last;
        last = doubt->identity;
    }
    free(extents);
    return 0;
}

int message_checks_judge(struct ring_reader *const *rings, size_t count,
                         struct identity_array *identities, struct message_checks *out)
{
    struct finding_array findings = {0};
    struct doubt_array doubts = {0};
    *out = (struct message_checks){0};
    for (size_t i = 0; i < identities->count; i++)
        identities->items[i].until_tsc[0] = identities->items[i].until_tsc[1] = UINT64_MAX;
    int result = findings_gather(rings, count, identities, &findings);
    for (size_t i = 0, end; result == 0 && i < findings.count; i = end) {
        for (end = i + 1;
             end < findings.count && findings.items[end].identity == findings.items[i].identity;)
            end++;
        struct identity *identity = &identities->items[findings.items[i].identity];
        for (unsigned d = 0; d < 2 && result == 0; d++)
            result = direction_judge(&findings.items[i], end - i, d, identity, out, &doubts);
    }
    if (result == 0)
        result = doubts_settle(rings, count, identities, &doubts, out);
    array_free(&findings);
    array_free(&doubts);
    return result;
}
