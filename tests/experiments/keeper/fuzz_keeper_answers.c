// SPDX-License-Identifier: MIT
//
// What the keeper of a machine behind ssh answers, which may be no machine of ours: each request is
// refused, or what it gives is text that ends and shows what it is. The input: an answer's number,
// then its text up to a zero byte, and so on; the last answer may be cut short.
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "experiments/keeper/keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ANSWERS = 24 };

static size_t answers_make(const uint8_t *data, size_t size, struct keeper_answer *answers)
{
    size_t count = 0;
    while (size > 0 && count < ANSWERS) {
        struct keeper_answer *answer = &answers[count++];
        *answer = (struct keeper_answer){.number = (int8_t)data[0] * (data[0] == 127 ? 9999 : 1)};
        data++, size--;
        const uint8_t *end = memchr(data, '\0', size);
        size_t bytes = end ? (size_t)(end - data) : size;
        size_t kept = bytes < sizeof answer->text ? bytes : sizeof answer->text;
        memcpy(answer->text, data, kept); // as long as it may be: without an end
        bytes += end != NULL;
        data += bytes, size -= bytes;
    }
    return count;
}

static void check_text(const char *text)
{
    assert(memchr(text, '\0', KEEPER_TEXT_BYTES));
    for (; *text; text++)
        assert((unsigned char)*text >= ' ' && *text != 127);
}

static void ask_all(struct keeper *keeper)
{
    char text[KEEPER_TEXT_BYTES] = "";
    struct error err = {0};
    int64_t offset_ns = 0;
    uint64_t bound_ns = 0;
    int number = 0;
    if (keeper_facts(keeper, "", text, &err) == 0)
        check_text(text);
    if (keeper_find(keeper, "/sys/class/net/*/mtu", 0, text, &err) == 1) {
        check_text(text);
        assert(strncmp(text, "/sys/class/net/", 15) == 0);
    }
    if (keeper_tune(keeper, KEEPER_FILE, "/proc/sys/x", "1", text, &number, &err) == 0) {
        check_text(text);
        assert(number >= 0 && strerror(number));
    }
    if (keeper_probe(keeper, "127.0.0.1", 1, &err) < 0)
        assert(err.text[0]);
    if (keeper_clock_offset(keeper, &offset_ns, &bound_ns, &err) < 0)
        assert(err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct keeper_answer answers[ANSWERS];
    struct keeper keeper;
    struct error err = {0};
    int ends[2];
    if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        return 0;
    signal(SIGPIPE, SIG_IGN);
    size_t bytes = answers_make(data + 1, size - 1, answers) * sizeof *answers;
    bytes -= data[0] < bytes && data[0] & 128 ? data[0] : 0;
    if (send(ends[1], answers, bytes, MSG_DONTWAIT) == (ssize_t)bytes || bytes == 0) {
        shutdown(ends[1], SHUT_WR);
        const struct process link = {.input = open("/dev/null", O_WRONLY | O_CLOEXEC),
                                     .output = ends[0]};
        if (keeper_start_far(&keeper, link, "/dev/null", "host far", 1000, &err) == 0) {
            ask_all(&keeper);
            keeper_end(&keeper, &err);
        } else {
            assert(err.text[0]);
        }
    } else {
        close(ends[0]);
    }
    close(ends[1]);
    return 0;
}
