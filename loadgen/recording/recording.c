// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording.h"

void recording_free(struct recording *recording)
{
    schedule_free(&recording->requests);
    array_free(&recording->keys);
    transactions_free(&recording->transactions);
    transactions_free(&recording->multigets);
    *recording = (struct recording){0};
}

double recording_rate(const struct recording *recording)
{
    const struct schedule *requests = &recording->requests;
    return (double)requests->count * 1e9 / (double)requests->items[requests->count - 1].offset_ns;
}

int recording_draw(const struct recording *recording, const struct workload *workload, double rate,
                   uint64_t duration_ns, uint64_t seed, struct schedule *schedule,
                   struct error *err)
{
    double stretch = recording_rate(recording) / rate;
    *schedule = (struct schedule){0};
    for (size_t i = 0; i < recording->requests.count; i++) {
        struct scheduled_request request = recording->requests.items[i];
        double ns = (double)request.offset_ns * stretch;
        if (!(ns < (double)duration_ns))
            break;
        request.offset_ns = (uint64_t)ns;
        if (array_push(schedule, request) < 0) {
            schedule_free(schedule);
            return error_set(err, ERROR_FAILED, "out of memory for the recording's schedule");
        }
    }
    if (recording->has_keys && recording->has_operations)
        return 0;
    schedule_draw_requests(workload, seed, schedule);
    for (size_t i = 0; i < schedule->count; i++) {
        const struct scheduled_request *recorded = &recording->requests.items[i];
        if (recording->has_keys)
            schedule->items[i].key = recorded->key;
        if (recording->has_operations)
            schedule->items[i].operation = recorded->operation;
    }
    return 0;
}

void recording_apply(const struct recording *recording, struct workload *workload)
{
    if (recording->keys.count == 0)
        return;
    workload->key_count = recording->keys.count;
    workload->recorded = recording->keys.items;
    if (recording->transactions.items.count)
        workload->transactions = &recording->transactions;
    if (recording->multigets.items.count)
        workload->multigets = &recording->multigets;
}
