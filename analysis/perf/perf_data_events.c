// SPDX-License-Identifier: MIT
#include "analysis/perf/perf_data_events.h"

#include "analysis/perf/perf_data_reader.h"
#include "base/array.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

// --- sample_id: the fields at a record's end (perf_id_fields) -----------------------------------

struct sample_id {
    size_t bytes; // how long it is
    uint64_t time;
    uint32_t pid, tid, cpu;
    bool has_time;
};

// The attribute a record belongs to. Synthesized records have id 0 and the layout of the first
// attribute. NULL: unknown.
static const struct perf_attr *attr_of(struct perf_reader *reader, uint64_t id)
{
    return id == 0 ? &reader->data->attrs.items[0] : perf_attr_of_id(reader, id);
}

static void take_sample_id(const struct perf_attr *attr, const uint8_t *record, size_t size,
                           struct sample_id *out)
{
    uint64_t type = attr->sample_type;
    out->bytes = (size_t)__builtin_popcountll(type & perf_id_fields) * 8;
    if (out->bytes > size - sizeof(struct perf_record_header))
        return; // the caller checks that the record is long enough
    const uint8_t *at = record + size - out->bytes;
    if (type & PERF_SAMPLE_HAS_TID) {
        out->pid = perf_u32(at);
        out->tid = perf_u32(at + 4);
        at += 8;
    }
    if (type & PERF_SAMPLE_HAS_TIME) {
        out->time = perf_u64(at);
        out->has_time = true;
        at += 8;
    }
    at += type & PERF_SAMPLE_HAS_ID ? 8 : 0;
    at += type & PERF_SAMPLE_HAS_STREAM_ID ? 8 : 0;
    if (type & PERF_SAMPLE_HAS_CPU)
        out->cpu = perf_u32(at);
    if (out->has_time && out->time == 0) // synthesized: all of it is zero
        out->pid = out->tid = out->cpu = PERF_NO_PID;
}

static void read_sample_id(struct perf_reader *reader, const uint8_t *record, size_t size,
                           struct sample_id *out)
{
    *out = (struct sample_id){.pid = PERF_NO_PID, .tid = PERF_NO_PID, .cpu = PERF_NO_CPU};
    perf_index_attrs(reader);
    const struct perf_attr_array *attrs = &reader->data->attrs;
    if (!attrs->count)
        return;
    const struct perf_attr *attr = &attrs->items[0];
    size_t from_end = reader->id_from_end * 8;
    if (!reader->attrs_alike && from_end && size >= from_end + sizeof(struct perf_record_header)) {
        uint64_t id = perf_u64(record + size - from_end);
        attr = attr_of(reader, id);
        if (!attr) {
            perf_complain(reader, "%s of event %" PRIu64 ", which no attribute has",
                          perf_record_name(perf_u32(record)), id);
            return;
        }
    }
    if (attr->sample_id_all)
        take_sample_id(attr, record, size, out);
}

// --- checking ------------------------------------------------------------------------------------

struct shape {
    uint8_t fixed; // bytes of the body before the string, or in all
    bool string;   // a NUL-terminated string follows
    bool kept;     // becomes an event
};

static const struct shape shapes[PERF_RECORD_TYPES] = {
    [PERF_MMAP] = {32, true, true},
    [PERF_LOST] = {16, false, true},
    [PERF_COMM] = {8, true, true},
    [PERF_EXIT] = {24, false, true},
    [PERF_THROTTLE] = {24, false, false},
    [PERF_UNTHROTTLE] = {24, false, false},
    [PERF_FORK] = {24, false, true},
    [PERF_READ] = {8, false, false},
    [PERF_MMAP2] = {64, true, true},
    [PERF_AUX] = {24, false, true},
    [PERF_ITRACE_START] = {8, false, true},
    [PERF_LOST_SAMPLES] = {8, false, true},
    [PERF_SWITCH] = {0, false, true},
    [PERF_SWITCH_CPU_WIDE] = {8, false, true},
    [PERF_NAMESPACES] = {16, false, false},
    [PERF_KSYMBOL] = {16, true, true},
    [PERF_BPF_EVENT] = {16, false, true},
    [PERF_CGROUP] = {8, true, false},
    [PERF_TEXT_POKE] = {12, false, true},
    [PERF_AUX_OUTPUT_HW_ID] = {8, false, false},
    [PERF_CALLCHAIN_DEFERRED] = {8, false, false},
    [PERF_AUXTRACE_ERROR] = {40, false, true},
};

// If there is a time (fmt, since Linux 5.0), the message comes after it.
enum { ERROR_MESSAGE_BYTES = 64, ERROR_MESSAGE_AT = 40, ERROR_MESSAGE_AT_WITH_TIME = 48 };

static size_t error_message_at(const uint8_t *record)
{
    return perf_u32(record + 28) ? ERROR_MESSAGE_AT_WITH_TIME : ERROR_MESSAGE_AT;
}

// Complains and returns false when a record does not have the form of its type. tail: bytes of
// sample_id.
static bool check_shape(struct perf_reader *reader, const uint8_t *record, size_t size, size_t tail)
{
    uint32_t type = perf_u32(record);
    const struct shape *shape = &shapes[type];
    size_t body = size - sizeof(struct perf_record_header);
    if (body < tail || body - tail < shape->fixed + (shape->string ? 1u : 0u)) {
        perf_complain(reader, "%s of %zu bytes, of which sample_id should be %zu: too short",
                      perf_record_name(type), size, tail);
        return false;
    }
    const char *text = (const char *)record + sizeof(struct perf_record_header) + shape->fixed;
    size_t most = body - tail - shape->fixed;
    if (type == PERF_AUXTRACE_ERROR) {
        size_t at = error_message_at(record);
        text = (const char *)record + at;
        most = size > at ? size - at : 0;
        if (most > ERROR_MESSAGE_BYTES)
            most = ERROR_MESSAGE_BYTES;
    } else if (type == PERF_TEXT_POKE) {
        size_t code = (size_t)perf_u16(record + 16) + perf_u16(record + 18);
        if (code > most)
            perf_complain(reader, "TEXT_POKE of %zu bytes cannot hold %zu bytes of code", size,
                          code);
        return code <= most;
    } else if (!shape->string) {
        return true;
    }
    if (strnlen(text, most) < most)
        return true;
    perf_complain(reader, "%s whose text has no end", perf_record_name(type));
    return false;
}

// --- keeping -------------------------------------------------------------------------------------

// Whether a lean reading keeps the record as an event: those about code, names, and which task ran
// first.
static bool lean_keeps(uint32_t type)
{
    return type != PERF_AUX && type != PERF_EXIT && type != PERF_LOST &&
           type != PERF_LOST_SAMPLES && type != PERF_AUXTRACE_ERROR;
}

static void keep_event(struct perf_reader *reader, struct perf_event *event)
{
    struct perf_data *data = reader->data;
    bool copied = reader->compressed || reader->limits.lean;
    if (data->events.count >= reader->limits.events ||
        (copied && data->arena_bytes >= reader->limits.copy_bytes)) {
        if (data->events_over_limit++ == 0)
            perf_complain(reader, "more events than may be kept: from here on they are left out");
        return;
    }
    if (copied)
        event->record = perf_copy_record(reader, event->record, event->size);
    if (event->record && array_push(&data->events, *event) < 0)
        reader->out_of_memory = true;
}

static void count_losses(struct perf_data *data, const struct perf_event *event)
{
    if (event->type == PERF_LOST)
        data->lost_records += perf_u64(event->record + 16);
    else if (event->type == PERF_LOST_SAMPLES)
        data->lost_samples += perf_u64(event->record + 8);
    else if (event->type == PERF_AUXTRACE_ERROR)
        data->trace_errors++;
    if (event->type != PERF_AUX)
        return;
    const uint64_t flags = perf_u64(event->record + 24);
    data->aux_truncated += (flags & PERF_AUX_TRUNCATED) != 0;
    data->aux_gaps += (flags & (PERF_AUX_PARTIAL | PERF_AUX_COLLISION)) != 0;
}

void perf_read_sideband(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    uint32_t type = perf_u32(record);
    struct sample_id id = {.pid = PERF_NO_PID, .tid = PERF_NO_PID, .cpu = PERF_NO_CPU};
    if (type < PERF_HEADER_ATTR)
        read_sample_id(reader, record, size, &id);
    if (!check_shape(reader, record, size, id.bytes))
        return;
    if (!shapes[type].kept)
        return;
    unsigned mode = perf_u16(record + 4) & PERF_MISC_CPUMODE_MASK;
    if ((type == PERF_MMAP || type == PERF_MMAP2) &&
        (mode == PERF_MISC_GUEST_KERNEL || mode == PERF_MISC_GUEST_USER)) {
        reader->data->guest_records++;
        return;
    }
    struct perf_event event = {.time = id.time,
                               .record = record,
                               .offset = reader->offset,
                               .type = type,
                               .pid = id.pid,
                               .tid = id.tid,
                               .cpu = id.cpu,
                               .input = reader->input,
                               .misc = perf_u16(record + 4),
                               .size = (uint16_t)size};
    if (!id.has_time && (type == PERF_FORK || type == PERF_EXIT))
        event.time = perf_u64(record + 24);
    else if (!id.has_time && type == PERF_AUXTRACE_ERROR)
        event.time = perf_u32(record + 28) ? perf_u64(record + 40) : 0;
    else if (!id.has_time)
        reader->data->without_time++;
    if (event.time == UINT64_MAX) // how perf writes "unknown"
        event.time = 0;
    count_losses(reader->data, &event);
    if (reader->limits.lean && (type == PERF_SWITCH || type == PERF_SWITCH_CPU_WIDE))
        perf_take_switch(reader, &event);
    else if (!reader->limits.lean || lean_keeps(type))
        keep_event(reader, &event);
}

// --- order ---------------------------------------------------------------------------------------

// The first event of [from, to) that is later than `time`, or (or_at) at it.
static size_t first_later(const struct perf_event *events, size_t from, size_t to, uint64_t time,
                          bool or_at)
{
    return array_bound(from, to, at, events[at].time < time || (!or_at && events[at].time == time));
}

// Merges the ascending stretches [from, middle) and [middle, to) in place. Events are only slightly
// out of order, so only the overlap of the two is moved, using a copy of its shorter part.
static int merge_stretches(struct perf_event *events, size_t from, size_t middle, size_t to,
                           struct perf_event_array *spare)
{
    from = first_later(events, from, middle, events[middle].time, false);
    if (from == middle)
        return 0;
    to = first_later(events, middle, to, events[middle - 1].time, true);
    size_t left = middle - from, right = to - middle;
    size_t shorter = left < right ? left : right;
    if (array_reserve(spare, shorter) < 0)
        return -1;
    struct perf_event *copy = spare->items;
    if (left <= right) { // from the front, while the left part is in the copy
        memcpy(copy, events + from, left * sizeof *copy);
        for (size_t i = 0; i < left;)
            events[from++] =
                middle < to && events[middle].time < copy[i].time ? events[middle++] : copy[i++];
    } else { // from the back, while the right part is in the copy
        memcpy(copy, events + middle, right * sizeof *copy);
        for (size_t i = right; i > 0;)
            events[--to] = middle > from && events[middle - 1].time > copy[i - 1].time
                               ? events[--middle]
                               : copy[--i];
    }
    return 0;
}

// In place: a recording is almost sorted already, and may be large. perf writes the buffers of the
// CPUs one after the other, round by round, so the events form ascending stretches, which are
// merged pairwise.
int perf_sort_events(struct perf_event_array *events)
{
    struct ascending_stretches ARRAY_OF(size_t) stretches = {0}; // where each begins
    struct perf_event_array spare = {0};
    int result = 0;
    for (size_t i = 0; i < events->count && result == 0; i++)
        if (i == 0 || events->items[i - 1].time > events->items[i].time)
            result = array_push(&stretches, i);
    while (stretches.count > 1 && result == 0) {
        size_t kept = 0;
        for (size_t i = 0; i < stretches.count && result == 0; i += 2) {
            size_t to = i + 2 < stretches.count ? stretches.items[i + 2] : events->count;
            if (i + 1 < stretches.count)
                result = merge_stretches(events->items, stretches.items[i], stretches.items[i + 1],
                                         to, &spare);
            stretches.items[kept++] = stretches.items[i];
        }
        stretches.count = kept;
    }
    array_free(&stretches);
    array_free(&spare);
    return result;
}

// --- typed readers of records that were checked already ------------------------------------------

void perf_event_mmap(const struct perf_event *event, struct perf_mmap *out)
{
    enum { PROT_EXECUTE = 4 };
    assert(event->type == PERF_MMAP || event->type == PERF_MMAP2);
    const uint8_t *at = event->record;
    *out = (struct perf_mmap){.pid = perf_u32(at + 8),
                              .tid = perf_u32(at + 12),
                              .address = perf_u64(at + 16),
                              .bytes = perf_u64(at + 24),
                              .file_offset = perf_u64(at + 32),
                              .kernel = (event->misc & PERF_MISC_CPUMODE_MASK) == PERF_MISC_KERNEL,
                              .path = (const char *)at + 40};
    if (event->type == PERF_MMAP) {
        out->protection = event->misc & PERF_MISC_MMAP_DATA ? 0 : PROT_EXECUTE;
    } else {
        if (event->misc & PERF_MISC_MMAP_BUILD_ID) {
            out->build_id_size = at[40] <= sizeof out->build_id ? at[40] : 0;
            memcpy(out->build_id, at + 44, sizeof out->build_id);
        } else {
            out->major = perf_u32(at + 40);
            out->minor = perf_u32(at + 44);
            out->inode = perf_u64(at + 48);
        }
        out->protection = perf_u32(at + 64);
        out->flags = perf_u32(at + 68);
        out->path = (const char *)at + 72;
    }
    // perf synthesizes the kernel's own MMAP2 without any protection.
    out->executable = out->kernel || (out->protection & PROT_EXECUTE) != 0;
}

void perf_event_comm(const struct perf_event *event, struct perf_comm *out)
{
    assert(event->type == PERF_COMM);
    *out = (struct perf_comm){.pid = perf_u32(event->record + 8),
                              .tid = perf_u32(event->record + 12),
                              .exec = (event->misc & PERF_MISC_COMM_EXEC) != 0,
                              .name = (const char *)event->record + 16};
}

void perf_event_task(const struct perf_event *event, struct perf_task *out)
{
    assert(event->type == PERF_FORK || event->type == PERF_EXIT);
    *out = (struct perf_task){.pid = perf_u32(event->record + 8),
                              .parent_pid = perf_u32(event->record + 12),
                              .tid = perf_u32(event->record + 16),
                              .parent_tid = perf_u32(event->record + 20),
                              .time = perf_u64(event->record + 24)};
}

void perf_event_switch(const struct perf_event *event, struct perf_switch *out)
{
    assert(event->type == PERF_SWITCH || event->type == PERF_SWITCH_CPU_WIDE);
    *out = (struct perf_switch){.out = (event->misc & PERF_MISC_SWITCH_OUT) != 0,
                                .preempted = (event->misc & PERF_MISC_SWITCH_PREEMPT) != 0,
                                .other_pid = PERF_NO_PID,
                                .other_tid = PERF_NO_PID};
    if (event->type == PERF_SWITCH_CPU_WIDE) {
        out->other_pid = perf_u32(event->record + 8);
        out->other_tid = perf_u32(event->record + 12);
    }
}

void perf_event_aux(const struct perf_event *event, struct perf_aux *out)
{
    assert(event->type == PERF_AUX);
    *out = (struct perf_aux){.offset = perf_u64(event->record + 8),
                             .bytes = perf_u64(event->record + 16),
                             .flags = perf_u64(event->record + 24)};
}

void perf_event_itrace_start(const struct perf_event *event, struct perf_itrace_start *out)
{
    assert(event->type == PERF_ITRACE_START);
    *out = (struct perf_itrace_start){perf_u32(event->record + 8), perf_u32(event->record + 12)};
}

void perf_event_lost(const struct perf_event *event, struct perf_lost *out)
{
    assert(event->type == PERF_LOST || event->type == PERF_LOST_SAMPLES);
    out->lost = perf_u64(event->record + (event->type == PERF_LOST ? 16 : 8));
}

void perf_event_text_poke(const struct perf_event *event, struct perf_text_poke *out)
{
    assert(event->type == PERF_TEXT_POKE);
    const uint8_t *at = event->record;
    *out = (struct perf_text_poke){.address = perf_u64(at + 8),
                                   .old_bytes = perf_u16(at + 16),
                                   .new_bytes = perf_u16(at + 18),
                                   .old_code = at + 20,
                                   .new_code = at + 20 + perf_u16(at + 16)};
}

void perf_event_ksymbol(const struct perf_event *event, struct perf_ksymbol *out)
{
    enum { UNREGISTERED = 1, BPF = 1 };
    assert(event->type == PERF_KSYMBOL);
    const uint8_t *at = event->record;
    *out = (struct perf_ksymbol){.address = perf_u64(at + 8),
                                 .bytes = perf_u32(at + 16),
                                 .unregistered = (perf_u16(at + 22) & UNREGISTERED) != 0,
                                 .bpf = perf_u16(at + 20) == BPF,
                                 .name = (const char *)at + 24};
}

void perf_event_bpf(const struct perf_event *event, struct perf_bpf *out)
{
    enum { LOAD = 1, UNLOAD };
    assert(event->type == PERF_BPF_EVENT);
    uint16_t what = perf_u16(event->record + 8);
    *out = (struct perf_bpf){.loaded = what == LOAD,
                             .unloaded = what == UNLOAD,
                             .program = perf_u32(event->record + 12)};
}

void perf_event_auxtrace_error(const struct perf_event *event, struct perf_auxtrace_error *out)
{
    assert(event->type == PERF_AUXTRACE_ERROR);
    const uint8_t *at = event->record;
    *out = (struct perf_auxtrace_error){.type = perf_u32(at + 8),
                                        .code = perf_u32(at + 12),
                                        .cpu = perf_u32(at + 16),
                                        .pid = perf_u32(at + 20),
                                        .tid = perf_u32(at + 24),
                                        .address = perf_u64(at + 32),
                                        .time = perf_u32(at + 28) ? perf_u64(at + 40) : 0,
                                        .message = (const char *)at + error_message_at(at)};
}
