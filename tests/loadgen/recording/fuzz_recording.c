// SPDX-License-Identifier: MIT
//
// A recording's text or packets are anyone's: whatever the bytes, it is refused or its times
// ascend, its operations are the protocol's and its keys those that it counts.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen/recording/recording_csv.h"
#include "loadgen/recording/recording_pcap.h"
#include "workloads/protocols/redis.h"
#include "workloads/transactions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(const uint8_t *data, size_t size, const struct workload *workload,
                 struct recording *recording)
{
    static void *held; // what is loaded and unloaded for each recording takes 20 ms each time
    struct error err;
    if (!pcap_begins(data, size))
        return recording_parse((const char *)data, size, "input", workload, recording, &err);
    if (!held)
        held = dlopen("libpcap.so.0.8", RTLD_NOW | RTLD_LOCAL);
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    return file ? recording_parse_pcap(file, "input", workload, recording, &err) : -1;
}

static void check_transactions(const struct recording *recording, const struct workload *workload)
{
    const struct recorded_transactions *all = &recording->transactions;
    size_t next = 0;
    for (size_t i = 0; i < all->items.count; i++) {
        const struct recorded_transaction *one = &all->items.items[i];
        if (one->place >= recording->requests.count || one->count == 0 || one->first != next ||
            recording->requests.items[one->place].operation != REDIS_TRANSACTION ||
            transactions_find(all, one->place) != one)
            abort();
        next += one->count;
    }
    if (next != all->commands.count)
        abort();
    for (size_t i = 0; i < next; i++)
        if (all->commands.items[i].operation >= workload->protocol->operation_count ||
            all->commands.items[i].key >= recording->keys.count)
            abort();
}

static void check(const uint8_t *data, size_t size, const struct protocol *protocol)
{
    struct recording recording = {0};
    struct workload workload;
    workload_defaults(&workload);
    workload.protocol = protocol;
    if (parse(data, size, &workload, &recording) < 0) {
        recording_free(&recording);
        return;
    }
    for (size_t i = 1; i < recording.requests.count; i++)
        if (recording.requests.items[i].offset_ns < recording.requests.items[i - 1].offset_ns)
            abort();
    for (size_t i = 0; i < recording.requests.count; i++)
        if (recording.requests.items[i].operation >= workload.protocol->operation_count ||
            (recording.has_keys && recording.requests.items[i].key >= recording.keys.count))
            abort();
    check_transactions(&recording, &workload);
    recording_apply(&recording, &workload);
    if (workload_key_bytes_max(&workload) > WORKLOAD_KEY_BYTES_MAX ||
        workload_value_bytes_max(&workload) > WORKLOAD_VALUE_BYTES_MAX)
        abort();
    recording_free(&recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size, &memcached_text_protocol);
    check(data, size, &redis_protocol);
    return 0;
}
