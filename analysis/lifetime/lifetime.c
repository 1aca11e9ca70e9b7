// SPDX-License-Identifier: MIT
#include "analysis/lifetime/lifetime.h"

#include <math.h>

static const char *const stamp_names[STAMP_KINDS] = {
#define STAMP(NAME, name, stage, ROLE, means) name,
#include "analysis/lifetime/lifetimes.tbl.h"
};

static const struct {
    const char *name;
    enum core_role role;
} stages[STAGES] = {
#define STAMP(NAME, name, stage, ROLE, means) {stage, ROLE_##ROLE},
#include "analysis/lifetime/lifetimes.tbl.h"
};

static const char *const role_names[ROLES] = {"client", "network", "R", "A"};

static const struct {
    const char *name;
    enum stamp_kind begin, end;
} parts[PARTS] = {
    [PART_WHOLE] = {"whole", STAMP_INTENDED, STAMP_REPLY_READ},
    [PART_RECEIVE] = {"receive", STAMP_NIC, STAMP_APPLICATION},
    [PART_SERVICE] = {"service", STAMP_APPLICATION, STAMP_REPLY},
    [PART_SEND] = {"send", STAMP_REPLY, STAMP_SERVER_TX},
};

static const char *const state_names[LIFETIME_STATES] = {
#define LIFETIME_STATE(NAME, words, means) words,
#include "analysis/lifetime/lifetimes.tbl.h"
};

const char *stamp_name(enum stamp_kind kind)
{
    return kind < STAMP_KINDS ? stamp_names[kind] : "?";
}

const char *stage_name(enum stamp_kind ends_at, unsigned undivided)
{
    if (ends_at == STAMP_CLIENT_RX && undivided & UNDIVIDED_NETWORK)
        return undivided & UNDIVIDED_WAY_BACK ? "both ways, undivided" : "network (both ways)";
    if (ends_at == STAMP_CLIENT_RX && undivided & UNDIVIDED_WAY_BACK)
        return "way back, undivided";
    if (ends_at == STAMP_NIC && undivided & UNDIVIDED_WAY_IN)
        return "way in, undivided";
    return (unsigned)ends_at < STAGES ? stages[ends_at].name : "?";
}

enum core_role stage_role(enum stamp_kind ends_at)
{
    return (unsigned)ends_at < STAGES ? stages[ends_at].role : ROLE_CLIENT;
}

const char *role_name(enum core_role role)
{
    return role < ROLES ? role_names[role] : "?";
}

const char *lifetime_state_name(enum lifetime_state state)
{
    return state < LIFETIME_STATES ? state_names[state] : "?";
}

const char *lifetime_part_name(enum lifetime_part part)
{
    return part < PARTS ? parts[part].name : "?";
}

enum stamp_kind lifetime_part_begin(enum lifetime_part part)
{
    return parts[part].begin;
}

enum stamp_kind lifetime_part_end(enum lifetime_part part)
{
    return parts[part].end;
}

double lifetime_part_ns(const struct lifetime *life, enum lifetime_part part)
{
    if (part == PART_WHOLE)
        return life->latency_ns;
    if (!lifetime_has(life, parts[part].begin) || !lifetime_has(life, parts[part].end))
        return NAN;
    double sum = 0;
    for (unsigned stage = parts[part].begin + 1; stage <= parts[part].end; stage++)
        sum += life->stage_ns[stage];
    return sum;
}

enum lifetime_state lifetime_state_of_stamps(const struct lifetime *life)
{
    static const struct {
        enum stamp_kind stamp;
        enum lifetime_state without;
    } needed[] = {
        {STAMP_NIC, LIFETIME_NO_NIC},
        {STAMP_HANDOFF, LIFETIME_NO_HANDOFF},
        {STAMP_APPLICATION, LIFETIME_NO_APPLICATION},
        {STAMP_REPLY, LIFETIME_NO_REPLY},
    };
    if (!lifetime_has(life, STAMP_INTENDED) || !lifetime_has(life, STAMP_SEND) ||
        !lifetime_has(life, STAMP_REPLY_READ))
        return LIFETIME_UNANSWERED;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!lifetime_has(life, needed[i].stamp) && !(life->untaken >> needed[i].stamp & 1))
            return needed[i].without;
    return LIFETIME_WHOLE;
}

static bool is_of_server(int kind)
{
    return kind >= STAMP_NIC && kind <= STAMP_SERVER_TX;
}

struct time_range lifetime_extent(const struct lifetime *life)
{
    struct time_range extent = {INT64_MAX, INT64_MIN};
    for (int kind = 0; kind < STAMP_KINDS; kind++) {
        int64_t at = life->stamp_ns[kind];
        if (!lifetime_has(life, (enum stamp_kind)kind))
            continue;
        extent.begin_ns = at < extent.begin_ns ? at : extent.begin_ns;
        extent.end_ns = at > extent.end_ns ? at : extent.end_ns;
    }
    return extent;
}

size_t lifetime_cores(const struct lifetime *life, uint16_t cores[LIFETIME_CORES])
{
    size_t count = 0;
    for (int kind = STAMP_NIC; kind <= STAMP_SERVER_TX; kind++) {
        uint16_t core = life->stamp_core[kind];
        bool is_new = lifetime_has(life, (enum stamp_kind)kind) && core != NO_CORE;
        for (size_t i = 0; i < count; i++)
            is_new &= cores[i] != core;
        if (is_new)
            cores[count++] = core;
    }
    return count;
}

// Compares a stamp with the one before it and says where in the life its stage ends: stages never
// run backwards, nor beyond the reply's arrival, whatever the stamps say.
static int64_t place_stamp(struct lifetime *life, int kind, int previous, int64_t cursor_ns,
                           double clock_error_ns, struct disorder *disorder)
{
    int64_t time = life->stamp_ns[kind];
    if (is_of_server(kind) != is_of_server(previous) && isfinite(life->hosts_error_ns))
        clock_error_ns += life->hosts_error_ns;
    double backwards = (double)(life->stamp_ns[previous] - time);
    if (backwards > clock_error_ns) {
        life->disordered |= (uint16_t)(1u << kind);
        disorder->violations++;
        if (backwards > disorder->worst_ns)
            disorder->worst_ns = backwards;
    } else if (backwards > 0) {
        disorder->clamped++;
    }
    if (kind != STAMP_REPLY_READ && time > life->stamp_ns[STAMP_REPLY_READ])
        time = life->stamp_ns[STAMP_REPLY_READ];
    return time > cursor_ns ? time : cursor_ns;
}

void lifetime_compute_stages(struct lifetime *life, double clock_error_ns,
                             struct disorder *disorder)
{
    life->merged = life->disordered = 0;
    for (int kind = 0; kind < STAGES; kind++)
        life->stage_ns[kind] = 0;
    bool sent = lifetime_has(life, STAMP_SEND);
    bool whole = lifetime_has(life, STAMP_INTENDED) && sent && lifetime_has(life, STAMP_REPLY_READ);
    life->latency_ns = INFINITY;
    life->uncorrected_latency_ns = sent ? INFINITY : (double)NAN;
    if (!whole)
        return;
    int64_t begin = life->stamp_ns[STAMP_INTENDED];
    // A reply read before the request was due can only be a broken log; it counts as 0.
    int64_t latency = life->stamp_ns[STAMP_REPLY_READ] - begin;
    int64_t uncorrected = life->stamp_ns[STAMP_REPLY_READ] - life->stamp_ns[STAMP_SEND];
    life->latency_ns = latency > 0 ? (double)latency : 0;
    life->uncorrected_latency_ns = uncorrected > 0 ? (double)uncorrected : 0;
    int64_t cursor = begin;
    int previous = STAMP_INTENDED;
    bool no_arrival = life->untaken >> STAMP_NIC & 1 && lifetime_has(life, STAMP_APPLICATION);
    for (int kind = STAMP_SEND; kind < STAMP_KINDS; kind++) {
        if (!lifetime_has(life, (enum stamp_kind)kind)) {
            life->merged |= (uint16_t)(1u << kind);
            continue;
        }
        if (!isfinite(life->hosts_error_ns) && kind == STAMP_NIC)
            life->merged |= 1u << STAMP_NIC; // into the way back
        int64_t end = place_stamp(life, kind, previous, cursor, clock_error_ns, disorder);
        int stage = kind == STAMP_APPLICATION && no_arrival ? STAMP_NIC : kind;
        life->stage_ns[stage] = (double)(end - cursor);
        cursor = end;
        previous = kind;
    }
    if (no_arrival && isfinite(life->hosts_error_ns))
        life->merged &= (uint16_t) ~(1u << STAMP_NIC);
    if (no_arrival)
        life->merged |= 1u << STAMP_APPLICATION;
}
