// SPDX-License-Identifier: MIT
//
// Any bytes as the capture.json of a window that `taillight watch` saved, and as the segments
// beside it: refused with the file's name, or what is looked at is there, within its limits and
// bounds, the segments' events become one log of each core's in order of time, and their logs of
// connections that ended one of all connections. The input: how many segments there are and which
// bring a header of their own, the text up to the first line's end, and the segments in equal
// parts, which are both logs of theirs.
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/run/input/run_segments.h"
#include "base/connection.h"
#include "profiler/bpf/event_log.h"
#include "tests/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_FILES = 3, MOST_BYTES = 512, MOMENTS = 5 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void name_of(char path[128], const char *folder, const char *log, unsigned number)
{
    snprintf(path, 128, "%s/server/%s-%06u.tlog", folder, log, number);
}

static void write_segment(const char *path, enum log_kind kind, size_t record_bytes,
                          const uint8_t *data, size_t size, bool own_header)
{
    const struct log_header header = {.magic = "TAILLOG",
                                      .kind = kind,
                                      .version = EVENT_LOG_VERSION,
                                      .header_bytes = sizeof header,
                                      .record_bytes = (uint32_t)record_bytes,
                                      .records = size / record_bytes};
    FILE *file = fopen(path, "we");
    must(file != NULL);
    if (!own_header) {
        fwrite(&header, sizeof header, 1, file);
        size -= size % record_bytes;
    }
    fwrite(data, 1, size, file);
    must(fclose(file) == 0);
}

static void check_read(const struct run_segments *segments, const json_t *capture)
{
    const json_t *ends = json_object_get(json_object_get(capture, "segments"), "ends_ns");
    must(segments->any == (json_object_get(capture, "segments") != NULL));
    if (!segments->any)
        return;
    must(segments->first >= 1 && segments->left_out <= segments->first);
    must(segments->ends.count == 0 || segments->ends.count == json_array_size(ends));
    for (size_t i = 0; i < segments->ends.count; i++)
        must(segments->ends.items[i] > (i ? segments->ends.items[i - 1] : 0));
    must(segments->from_ns >= 0 && segments->until_ns >= 0);
    must(segments->until_ns == 0 || segments->until_ns >= segments->from_ns);
}

static void check_chosen(struct run_segments *segments)
{
    const int64_t moments[MOMENTS] = {1, 1000, 2000, 2000, 1 << 30};
    const unsigned before = segments->count;
    const size_t within = run_segments_choose(segments, moments, MOMENTS);
    must(within <= MOMENTS);
    must(segments->chosen || (within == 0 && segments->count == before));
}

static void check_events(const struct log_reader *log)
{
    const struct event *events = log->records;
    must(log->header.records == log->count);
    for (size_t i = 1; i < log->count; i++)
        must(events[i - 1].core < events[i].core ||
             (events[i - 1].core == events[i].core && events[i - 1].time <= events[i].time));
}

static void check_sockets(const struct log_reader *log)
{
    const struct connection *all = log->records;
    must(log->header.records == log->count);
    for (size_t i = 1; i < log->count; i++)
        must(all[i - 1].id <= all[i].id && memcmp(&all[i - 1], &all[i], sizeof *all) != 0);
}

static void use(const json_t *capture, const char *folder)
{
    struct run_segments segments;
    struct log_reader log;
    struct error err;
    if (run_segments_read(&segments, capture, folder, "server", MOST_BYTES, &err) < 0) {
        must(strstr(err.text, "server/capture.json") != NULL);
        run_segments_free(&segments);
        return;
    }
    check_read(&segments, capture);
    if (segments.any)
        check_chosen(&segments);
    if (segments.any && run_segments_open_events(&segments, folder, &log, &err) == 0) {
        check_events(&log);
        log_reader_close(&log);
    } else if (segments.any) {
        must(strstr(err.text, folder) != NULL);
    }
    if (segments.any && run_segments_open_sockets(&segments, folder, &log, &err) == 0) {
        check_sockets(&log);
        log_reader_close(&log);
    } else if (segments.any) {
        must(strstr(err.text, folder) != NULL);
    }
    run_segments_free(&segments);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[64], side[80], path[128], sockets[100];
    const uint8_t *line_end = size ? memchr(data, '\n', size) : NULL;
    if (size < 2 || !line_end)
        return 0;
    json_t *capture = json_loadb((const char *)data + 1, (size_t)(line_end - data) - 1, 0, NULL);
    const unsigned files = data[0] % (MOST_FILES + 1);
    size -= (size_t)(line_end + 1 - data);
    const size_t part = files ? size / files : 0;
    snprintf(folder, sizeof folder, "%s/run", scratch_directory());
    must(mkdir(folder, 0700) == 0);
    snprintf(side, sizeof side, "%s/server", folder);
    must(mkdir(side, 0700) == 0);
    for (unsigned i = 0; i < files; i++) {
        const uint8_t *of = line_end + 1 + i * part;
        const bool own_header = data[0] >> (2 + i) & 1;
        name_of(path, folder, "events", i + 1);
        write_segment(path, LOG_EVENTS, sizeof(struct event), of, part, own_header);
        name_of(path, folder, "sockets", i + 1);
        write_segment(path, LOG_CONNECTIONS, sizeof(struct connection), of, part, own_header);
    }
    snprintf(sockets, sizeof sockets, "%s/sockets.tlog", side);
    write_segment(sockets, LOG_CONNECTIONS, sizeof(struct connection), line_end + 1, part, false);
    if (capture)
        use(capture, folder);
    for (unsigned i = 0; i < files; i++) {
        name_of(path, folder, "events", i + 1);
        unlink(path);
        name_of(path, folder, "sockets", i + 1);
        unlink(path);
    }
    unlink(sockets);
    rmdir(side);
    rmdir(folder);
    json_decref(capture);
    return 0;
}
