// SPDX-License-Identifier: MIT
#include "experiments/watch/flight_recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/json_numbers.h"
#include "base/units.h"
#include "experiments/watch/held_segments.h"

static const char prefix[] = "slow-";

int flight_recorder_trigger(struct flight_recorder *recorder, const char *text, struct error *err)
{
    const char *above = strchr(text, '>');
    uint64_t ns = 0;
    size_t bytes = above ? (size_t)(above - text) : 0;
    int quantile = LATENCY_QUANTILES - 1;
    for (int q = 0; bytes && q < LATENCY_QUANTILES; q++)
        if (strlen(latency_quantile_names[q]) == bytes &&
            memcmp(latency_quantile_names[q], text, bytes) == 0)
            quantile = q, bytes = 0;
    if (!above || bytes)
        return error_set(err, ERROR_INPUT,
                         "--trigger \"%s\": neither like '>5ms' nor like 'p99>2ms' (p50, p90, p99, "
                         "p99.9, p99.99, max)",
                         text);
    if (units_parse_duration_ns(above + 1, &ns, err) < 0)
        return error_prefix(err, "--trigger");
    recorder->any_trigger = true;
    recorder->quantile = quantile;
    recorder->above_ns = (double)ns;
    return 0;
}

int flight_recorder_windows(struct flight_recorder *recorder, const struct run_analysis *run,
                            const struct answer_array *answers, int64_t from_ns, int64_t until_ns,
                            struct slow_windows *out, struct error *err)
{
    double slowest = run->lifetimes.latency.value_ns[LATENCY_QUANTILES - 1];
    const struct slow_window all = {from_ns, until_ns, slowest, 0, false};
    int result = 0;
    if (!recorder->any_trigger)
        return 0;
    if (recorder->quantile == LATENCY_QUANTILES - 1 && answers->count)
        result = slow_windows_of_answers(answers, recorder->above_ns, from_ns, until_ns,
                                         recorder->saves, &recorder->slow_ended_ns, out);
    else if (recorder->quantile == LATENCY_QUANTILES - 1)
        result = slow_windows_find(&run->lifetimes.all, recorder->above_ns, from_ns, until_ns,
                                   recorder->saves, &recorder->slow_ended_ns, out);
    else if (run->lifetimes.latency.value_ns[recorder->quantile] > recorder->above_ns)
        result = array_push(out, all);
    return result == 0 ? 0 : error_set(err, ERROR_FAILED, "no memory for what is to be saved");
}

// --- saving --------------------------------------------------------------------------------------

// A file of the capture that the folder is to have, too; another name for it where that is
// possible.
static int keep_file(const char *from, const char *to, struct error *err)
{
    if (link(from, to) == 0)
        return 0;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out = -1, result = 0;
    struct stat status;
    if (in < 0 || fstat(in, &status) < 0 ||
        (out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
        result = -1;
    for (off_t left = result == 0 ? status.st_size : 0; left > 0;) {
        ssize_t moved = sendfile(out, in, NULL, (size_t)left);
        if (moved <= 0) {
            result = -1;
            break;
        }
        left -= moved;
    }
    if (result < 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot save %s as %s", from, to);
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) < 0 && result == 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot save %s as %s", from, to);
    return result;
}

static int is_saved(const struct dirent *entry)
{
    return strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
}

// Their names are times: the first ones are the oldest.
static void make_room(struct flight_recorder *recorder)
{
    struct dirent **entries = NULL;
    int count = scandir(recorder->folder, &entries, is_saved, alphasort);
    for (int i = 0; i < count; i++) {
        char path[RUN_PATH_BYTES + 300];
        snprintf(path, sizeof path, "%s/%s", recorder->folder, entries[i]->d_name);
        if ((uint64_t)(count - i) >= recorder->saves) {
            folder_remove(path);
            recorder->gone++;
        }
        free(entries[i]);
    }
    free(entries);
}

static int keep_named(const struct flight_recorder *recorder, const char *capture_dir,
                      const char *name, struct error *err)
{
    char from[RUN_PATH_BYTES + 64], to[RUN_PATH_BYTES + 64];
    snprintf(from, sizeof from, "%s/%s", capture_dir, name);
    snprintf(to, sizeof to, "%s/%s", recorder->path, name);
    return keep_file(from, to, err);
}

// Which of the segments in this list have a log of connections that the folder is to have: those of
// its own, and later ones that were there when it was saved.
static json_t *saved_sockets(const struct flight_recorder *recorder, const json_t *list,
                             struct run_segment_range range)
{
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *number = json_array_get(list, i);
        const json_int_t n = json_integer_value(number);
        char path[RUN_PATH_BYTES + 64];
        snprintf(path, sizeof path, "%s/sockets-%06lld.tlog", recorder->path, (long long)n);
        if (n >= range.first && (n <= range.last || access(path, F_OK) == 0))
            json_array_append(out, number);
    }
    return out;
}

// capture.json, but for the segments that are not there.
static int write_document(const struct flight_recorder *recorder, const char *capture_dir,
                          struct run_segment_range range, const struct slow_window *window,
                          struct error *err)
{
    char path[RUN_PATH_BYTES + 64];
    struct run_folder folder;
    snprintf(folder.path, sizeof folder.path, "%s", capture_dir);
    json_t *document = run_folder_read_json(&folder, "capture.json", err);
    if (!document)
        return -ERROR_FAILED;
    json_t *segments = json_object_get(document, "segments");
    json_object_set_new(segments, "first", json_integer(range.first));
    json_object_set_new(segments, "count", json_integer(range.last - range.first + 1));
    json_object_set_new(segments, "from_ns", json_integer(window->from_ns));
    json_object_set_new(segments, "until_ns", json_integer(window->until_ns));
    json_object_set_new(segments, "sockets",
                        saved_sockets(recorder, json_object_get(segments, "sockets"), range));
    json_object_set_new(segments, "why",
                        json_string("it was saved while the watch went on (taillight watch)"));
    snprintf(path, sizeof path, "%s/capture.json", recorder->path);
    int result = json_write(document, JSON_FOR_PEOPLE, path, err);
    json_decref(document);
    return result;
}

// What is not of a segment.
static const char *const beside[] = {"sockets.tlog", "clock.tlog"};

static int keep_segment_log(const struct flight_recorder *recorder, const char *capture_dir,
                            const char *log, unsigned number, bool if_there, struct error *err)
{
    char from[RUN_PATH_BYTES + 64], to[RUN_PATH_BYTES + 64];
    held_segment_path(capture_dir, log, number, from, sizeof from);
    snprintf(to, sizeof to, "%s/%s-%06u.tlog", recorder->path, log, number);
    return if_there && (access(from, F_OK) < 0 || access(to, F_OK) == 0) ? 0
                                                                         : keep_file(from, to, err);
}

static bool is_segment(const char *capture_dir, unsigned number)
{
    char path[RUN_PATH_BYTES + 64];
    held_segment_path(capture_dir, "events", number, path, sizeof path);
    return access(path, F_OK) == 0;
}

// Connections of a segment may have left the table of those that are there in that one, or in one
// that the capture has written since.
static int keep_segments(const struct flight_recorder *recorder, const char *capture_dir,
                         struct run_segment_range segments, struct error *err)
{
    int result = 0;
    for (unsigned number = segments.first; result == 0; number++) {
        if (number > segments.last && !is_segment(capture_dir, number))
            break;
        if (number <= segments.last)
            result = keep_segment_log(recorder, capture_dir, "events", number, false, err);
        if (result == 0)
            result = keep_segment_log(recorder, capture_dir, "sockets", number, true, err);
    }
    return result;
}

int flight_recorder_save(struct flight_recorder *recorder, const char *capture_dir,
                         struct run_segment_range segments, const struct slow_window *window,
                         struct error *err)
{
    struct tm utc;
    char when[32];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
    make_room(recorder);
    recorder->latest_segments = (struct run_segment_range){0};
    snprintf(recorder->path, sizeof recorder->path, "%s/%s%s-%06llu", recorder->folder, prefix,
             when, (unsigned long long)recorder->saved + 1);
    if (mkdir(recorder->path, 0700) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", recorder->path);
    recorder->saving = true;
    int result = keep_segments(recorder, capture_dir, segments, err);
    for (size_t i = 0; i < sizeof beside / sizeof *beside && result == 0; i++)
        result = keep_named(recorder, capture_dir, beside[i], err);
    if (result == 0)
        result = write_document(recorder, capture_dir, segments, window, err);
    if (result < 0)
        folder_remove(recorder->path);
    recorder->saving = false;
    if (result < 0)
        return result;
    recorder->saved++;
    recorder->latest = *window;
    recorder->latest_segments = segments;
    recorder->latest_is_longer = false;
    if (window->stretches > 1)
        recorder->shared += window->stretches;
    return 0;
}

// The names of what is not of a segment, for what the capture has written of it since.
static int renew_beside(const struct flight_recorder *recorder, const char *capture_dir,
                        struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < sizeof beside / sizeof *beside && result == 0; i++) {
        char from[RUN_PATH_BYTES + 64], new[RUN_PATH_BYTES + 64], to[RUN_PATH_BYTES + 64];
        snprintf(from, sizeof from, "%s/%s", capture_dir, beside[i]);
        snprintf(to, sizeof to, "%s/%s", recorder->path, beside[i]);
        snprintf(new, sizeof new, "%s/%s.new", recorder->path, beside[i]);
        result = keep_file(from, new, err);
        if (result == 0 && rename(new, to) < 0)
            result = error_set_errno(err, ERROR_FAILED, "cannot save %s as %s", from, to);
    }
    return result;
}

bool flight_recorder_lengthen(struct flight_recorder *recorder, const char *capture_dir,
                              struct run_segment_range segments, const struct slow_window *window)
{
    struct error ignored;
    const struct run_segment_range have = recorder->latest_segments,
                                   all = {.first = have.first, .last = segments.last},
                                   new = {.first = have.last + 1, .last = segments.last};
    struct slow_window both = recorder->latest;
    both.until_ns = window->until_ns;
    if (have.last == 0 || recorder->latest_is_longer || segments.first > new.first ||
        recorder->latest.until_ns != window->from_ns)
        return false;
    // What was saved stays as it was where this fails: its document does not know of the rest.
    if (keep_segments(recorder, capture_dir, new, &ignored) < 0 ||
        renew_beside(recorder, capture_dir, &ignored) < 0 ||
        write_document(recorder, capture_dir, all, &both, &ignored) < 0)
        return false;
    recorder->latest = both;
    recorder->latest_segments = all;
    recorder->latest_is_longer = true;
    recorder->lengthened++;
    if (window->stretches > 1)
        recorder->shared += window->stretches;
    return true;
}
