// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/input_file.h"
#include "base/log_file.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/recording/recording_csv.h"
#include "loadgen/recording/recording_pcap.h"

static const double longest_s = 86400;

static int load_text(const char *path, const struct workload *workload, struct recording *recording,
                     struct error *err)
{
    const void *text = NULL;
    size_t bytes = 0;
    int fd = input_open(path, err);
    if (fd < 0)
        return error_prefix(err, "the recording");
    int status = input_map(fd, path, &text, &bytes, err);
    if (status == 0 && !text)
        status = error_set(err, ERROR_INPUT, "%s: not a file with a recording in it", path);
    if (status == 0)
        status = recording_parse(text, bytes, path, workload, recording, err);
    input_unmap(text);
    close(fd);
    return status;
}

static int load_pcap(const char *path, const struct workload *workload, struct recording *recording,
                     struct error *err)
{
    int fd = input_open(path, err);
    if (fd < 0)
        return error_prefix(err, "the recording");
    FILE *file = fdopen(fd, "rb");
    if (!file) {
        close(fd);
        return error_set(err, ERROR_FAILED, "%s: out of memory", path);
    }
    return recording_parse_pcap(file, path, workload, recording, err);
}

// --- samples.tlog --------------------------------------------------------------------------------

// Times are in ticks of the TSC, whose rate the log does not have: it is derived from the kernel
// stamps of the sends.
static double ticks_per_ns(const struct sample *samples, size_t count)
{
    const struct sample *first = NULL, *last = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!samples[i].tx_ns || samples[i].tx_source == STAMP_USER)
            continue;
        first = first ? first : &samples[i];
        last = &samples[i];
    }
    if (!first || last->tx_ns <= first->tx_ns || last->sent_tsc <= first->sent_tsc)
        return NAN;
    return (double)(last->sent_tsc - first->sent_tsc) / (double)(last->tx_ns - first->tx_ns);
}

static int take_samples(const struct sample *samples, size_t count, const char *path,
                        const struct workload *workload, struct recording *recording,
                        struct error *err)
{
    double rate = ticks_per_ns(samples, count);
    uint64_t begin = count ? samples[0].intended_tsc : 0, before = begin;
    if (count < 2 || !(rate > 0.1 && rate < 100))
        return error_set(err, ERROR_INPUT,
                         "%s: too few requests with kernel stamps to know their times by", path);
    if (array_reserve(&recording->requests, count) < 0)
        return error_set(err, ERROR_FAILED, "%s: out of memory", path);
    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = &samples[i];
        double ns = (double)(sample->intended_tsc - begin) / rate;
        const char *wrong = sample->intended_tsc < before || !(ns <= longest_s * 1e9)
                                ? "out of order, or a day late"
                            : sample->operation >= workload->protocol->operation_count
                                ? "an operation that the workload's protocol lacks"
                            : sample->key >= workload->key_count
                                ? "a key beyond the workload's keys.count"
                                : NULL;
        if (wrong)
            return error_set(err, ERROR_INPUT, "%s: request %zu has %s", path, i + 1, wrong);
        before = sample->intended_tsc;
        recording->requests.items[recording->requests.count++] = (struct scheduled_request){
            .offset_ns = (uint64_t)ns, .key = sample->key, .operation = sample->operation};
    }
    recording->has_keys = recording->has_operations = true;
    if (recording->requests.items[count - 1].offset_ns == 0)
        return error_set(err, ERROR_INPUT, "%s: all of its requests are at one time", path);
    return 0;
}

static int load_log(const char *path, const struct workload *workload, struct recording *recording,
                    struct error *err)
{
    struct log_reader reader;
    int status =
        log_reader_open(&reader, path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), err);
    if (status < 0)
        return status;
    status = take_samples(reader.records, reader.count, path, workload, recording, err);
    log_reader_close(&reader);
    return status;
}

// As public traces of caches are. Returns whether it is, with the mend.
static bool is_compressed(const char *path, const char *begin, size_t count, struct error *err)
{
    static const struct {
        const char *begin, *by, *unpack;
    } known[] = {{"\x1f\x8b", "gzip", "gunzip -k"},
                 {"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
                 {"\xfd"
                  "7zXZ",
                  "xz", "unxz -k"},
                 {"BZh", "bzip2", "bunzip2 -k"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t bytes = strlen(known[i].begin);
        if (count < bytes || memcmp(begin, known[i].begin, bytes) != 0)
            continue;
        error_set(err, ERROR_INPUT, "%s is compressed by %s: unpack it first (%s %s)", path,
                  known[i].by, known[i].unpack, path);
        return true;
    }
    return false;
}

int recording_load(const char *path, const struct workload *workload, struct recording *recording,
                   struct error *err)
{
    char magic[8] = "";
    *recording = (struct recording){0};
    int fd = input_open(path, NULL);
    ssize_t got = fd >= 0 ? read(fd, magic, sizeof magic) : 0;
    if (fd >= 0)
        close(fd);
    if (got > 0 && is_compressed(path, magic, (size_t)got, err))
        return -ERROR_INPUT;
    int status = got == sizeof magic && memcmp(magic, "TAILLOG", sizeof magic) == 0
                     ? load_log(path, workload, recording, err)
                 : got > 0 && pcap_begins(magic, (size_t)got)
                     ? load_pcap(path, workload, recording, err)
                     : load_text(path, workload, recording, err);
    if (status < 0)
        recording_free(recording);
    return status;
}
