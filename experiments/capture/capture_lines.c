// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/progress.h"
#include "base/text.h"

enum { MOST_WAITING_BYTES = 1 << 20, LOOK_MS = 50 };

// What poll() finds room for, a pipe takes without waiting up to PIPE_BUF.
static int print_piece(struct capture_lines *lines, struct error *err)
{
    const size_t waiting = lines->waiting.count, piece = waiting < PIPE_BUF ? waiting : PIPE_BUF;
    ssize_t taken = write(STDOUT_FILENO, lines->waiting.items, piece);
    if (taken < 0 && (errno == EINTR || errno == EAGAIN))
        taken = 0;
    if (taken < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot print a line");
    lines->waiting.count -= (size_t)taken;
    memmove(lines->waiting.items, lines->waiting.items + taken, lines->waiting.count);
    return 0;
}

static bool is_taken(int wait_ms)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, wait_ms) == 1;
}

int capture_lines_flush(struct capture_lines *lines, struct error *err)
{
    int result = 0;
    while (result == 0 && lines->waiting.count && is_taken(0))
        result = print_piece(lines, err);
    return result;
}

int capture_lines_say(struct capture_lines *lines, json_t *document, struct error *err)
{
    char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    const size_t bytes = text ? strlen(text) : 0, used = lines->waiting.count;
    json_decref(document);
    int result = text ? 0 : error_set(err, ERROR_FAILED, "cannot print a line: out of memory");
    if (result == 0 && used + bytes >= MOST_WAITING_BYTES) {
        lines->lost++;
    } else if (result == 0 && array_reserve(&lines->waiting, used + bytes + 1) < 0) {
        result = error_set(err, ERROR_FAILED, "cannot print a line: out of memory");
    } else if (result == 0) {
        memcpy(lines->waiting.items + used, text, bytes);
        lines->waiting.items[used + bytes] = '\n';
        lines->waiting.count = used + bytes + 1;
    }
    free(text);
    return result < 0 ? result : capture_lines_flush(lines, err);
}

int capture_lines_finish(struct capture_lines *lines, bool interrupted, struct error *err)
{
    int result = capture_lines_flush(lines, err);
    while (result == 0 && lines->waiting.count && !interrupted && !process_is_interrupted())
        if (is_taken(LOOK_MS))
            result = print_piece(lines, err);
    uint64_t unread = lines->lost;
    for (size_t i = 0; i < lines->waiting.count; i++)
        unread += lines->waiting.items[i] == '\n';
    if (unread && progress_is_heard())
        fprintf(stderr, "taillight: %s line%s on stdout that nobody read\n", TEXT_COUNT(unread),
                text_plural((double)unread));
    return result;
}

void capture_lines_free(struct capture_lines *lines)
{
    array_free(&lines->waiting);
}
