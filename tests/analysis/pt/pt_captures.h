// SPDX-License-Identifier: MIT
//
// Real captures (the README beside them), unpacked and loaded, each in the way that its recorder
// needs.
#ifndef TESTS_ANALYSIS_PT_PT_CAPTURES_H
#define TESTS_ANALYSIS_PT_PT_CAPTURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/pt/pt_trace.h"
#include "tests/analysis/pt/pt_plain_walk.h"

enum { CAPTURE_PAGES = 32, CAPTURE_STREAMS = 8 };

struct capture {
    const char *archive, *name;
    const char *stream; // a bare stream, whose code is in the xpage files beside it
    const char *json;   // or a trace.json
    const char *perf;   // or a perf.data, with code in `binaries`
    const char *binaries;
};

static const struct capture captures[] = {
    {"process-hello", "hello", .stream = "hello/26338.pt"},
    {"process-last", "last", .stream = "last/1378.pt"},
    {"percpu-multi-core", "percpu", .json = "intelpt-multi-core-trace/trace.json"},
    {"perf-data-hase", "loopy", .perf = "loopy-20180514T145114/perf.data.1",
     .binaries = "loopy-20180514T145114/binaries"},
    {"perf-data-hase", "control_flow", .perf = "control_flow-20180515T180451/perf.data.1",
     .binaries = "control_flow-20180515T180451/binaries"},
};
enum { CAPTURES = sizeof captures / sizeof *captures };

static inline const char *capture_data(char out[4096])
{
    const char *data = getenv("TAILLIGHT_DATA");
    snprintf(out, 4096, "%s/pt", data ? data : "../shared/data");
    return out;
}

static inline int capture_unpack(const struct capture *capture, const char *dir)
{
    char data[4096], command[9000];
    snprintf(command, sizeof command, "tar --no-same-owner -xJf '%s/%s.tar.xz' -C '%s'",
             capture_data(data), capture->archive, dir);
    return system(command) == 0 ? 0 : -1;
}

// The xpage files beside the stream, named by their address.
static inline int capture_pages(struct pt_trace *trace, const char *stream, struct error *err)
{
    struct code_given given[CAPTURE_PAGES];
    char command[9000], path[CAPTURE_PAGES][4096];
    size_t count = 0;
    snprintf(command, sizeof command, "ls \"$(dirname '%s')\"/xpage-*", stream);
    FILE *list = popen(command, "r");
    while (list && count < CAPTURE_PAGES && fgets(path[count], sizeof path[count], list)) {
        path[count][strcspn(path[count], "\n")] = 0;
        const char *address = strrchr(path[count], '-') + 1;
        given[count] = (struct code_given){.path = path[count],
                                           .address = strtoull(address, NULL, 16),
                                           .has_address = true,
                                           .raw = true};
        count++;
    }
    if (!list || pclose(list) != 0)
        return -1;
    return pt_trace_add_code(trace, given, count, err);
}

static inline int capture_load(const struct capture *capture, const char *dir,
                               struct pt_trace *trace, struct error *err)
{
    char path[4096], binaries[4096];
    const char *name = capture->stream ? capture->stream
                       : capture->json ? capture->json
                                       : capture->perf;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(binaries, sizeof binaries, "%s/%s", dir, capture->binaries ? capture->binaries : "");
    struct code_image_options how = {.symfs = binaries, .recording = path};
    struct pt_recorder recorder = {0};
    int result = pt_trace_init(trace, err);
    if (result < 0)
        return result;
    if (capture->json)
        return pt_trace_load_json(trace, path, err);
    if (capture->perf)
        return pt_trace_load_perf(trace, path, &how, err);
    result = capture_pages(trace, path, err);
    return result < 0 ? result : pt_trace_add_file(trace, path, PT_NO_CPU, &recorder, err);
}

// --- each of them --------------------------------------------------------------------------------

// The capture's streams that have bytes, with their indexes; they are the trace's.
typedef void capture_use(void *context, const struct capture *capture, const struct pt_trace *trace,
                         struct pt_stream *streams, size_t count);

static inline int capture_streams(const struct pt_trace *trace,
                                  struct pt_stream streams[CAPTURE_STREAMS], size_t *count,
                                  struct error *err)
{
    int result = trace->streams.count <= CAPTURE_STREAMS ? 0 : -1;
    *count = 0;
    for (size_t i = 0; result == 0 && i < trace->streams.count; i++) {
        struct pt_trace_stream *stream = trace->streams.items[i];
        if (stream->packets.syncs.count == 0)
            result = pt_packets_scan(&stream->stream.bytes, &stream->packets, err);
        if (stream->stream.bytes.data && stream->stream.bytes.bytes)
            streams[(*count)++] = stream->stream;
    }
    return result;
}

static inline int capture_use_one(const struct capture *capture, const char *dir, capture_use *use,
                                  void *context)
{
    struct pt_trace trace;
    struct pt_stream streams[CAPTURE_STREAMS];
    struct error err;
    size_t count;
    int result = capture_unpack(capture, dir);
    if (result < 0)
        return result;
    result = capture_load(capture, dir, &trace, &err);
    if (result == 0)
        result = capture_streams(&trace, streams, &count, &err);
    if (result == 0 && count)
        use(context, capture, &trace, streams, count);
    pt_trace_free(&trace);
    return result;
}

// Uses each capture that is there. Returns how many archives there are, after a word on it where
// there is no folder of them; negative: one cannot be read.
static inline int captures_each(capture_use *use, void *context)
{
    char data[4096], dir[] = "/tmp/taillight-captures-XXXXXX", command[64];
    int result = 0, used = 0;
    if (access(capture_data(data), R_OK) < 0) {
        printf("no captures under %s; set TAILLIGHT_DATA to where they are\n", data);
        return 0;
    }
    if (!mkdtemp(dir))
        return -1;
    for (size_t i = 0; i < CAPTURES && result == 0; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s.tar.xz", data, captures[i].archive);
        if (access(path, R_OK) < 0)
            continue;
        result = capture_use_one(&captures[i], dir, use, context);
        used++;
    }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) == 0 && result == 0 ? used : -1;
}

#endif
