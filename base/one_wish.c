// SPDX-License-Identifier: MIT
#include "base/one_wish.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { READER_LOOK_US = 10000 }; // no more often is looked whether a reader keeps the program

bool one_wish_of_parent(int number)
{
    int dies_with = 0;
    return prctl(PR_GET_PDEATHSIG, &dies_with) == 0 && dies_with == number;
}

void one_wish_take_rest(const sigset_t *signals, int64_t told_ns)
{
    for (;;) {
        const int64_t left_ns = told_ns + ONE_WISH_MS * INT64_C(1000000) - monotonic_ns();
        const struct timespec wait = {.tv_nsec = left_ns > 0 ? left_ns : 0};
        if (sigtimedwait(signals, NULL, &wait) < 0 && errno != EINTR)
            return;
    }
}

void one_wish_reopen(const sigset_t *before)
{
    sigset_t mask = *before;
    if (one_wish_of_parent(SIGTERM))
        sigaddset(&mask, SIGTERM);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

// A handler has no other place for them.
static struct sigaction after_spared[NSIG];
static volatile sig_atomic_t noted; // the signal; 0: none
static volatile sig_atomic_t hands_over;

// Of who hands over: when it was last looked at, and how long it had not waited by then, but run or
// been ready to; and what is left of its wait for the reader.
static int account = -1;
static int64_t looked_ns, busy_ns, patience_ns;

// Computing and a core that others have are no wait for a reader, however long they take. 0: the
// kernel keeps no account (/proc/<pid>/schedstat), so that all time is taken for waiting.
static int64_t busy_so_far(void)
{
    char text[80];
    const ssize_t got = pread(account, text, sizeof text, 0);
    int64_t fields[2] = {0}; // ns that it ran, and that it was ready
    for (ssize_t i = 0, field = 0; i < got && field < 2; i++)
        if (text[i] >= '0' && text[i] <= '9')
            fields[field] = fields[field] * 10 + (text[i] - '0');
        else
            field++;
    return fields[0] + fields[1];
}

// A timer of the process, not of a thread that would have to begin now.
static void limit_reader(void)
{
    const suseconds_t left_us = (suseconds_t)(patience_ns / 1000);
    const struct itimerval limit = {.it_value.tv_usec = left_us + READER_LOOK_US};
    looked_ns = monotonic_ns();
    busy_ns = busy_so_far();
    setitimer(ITIMER_REAL, &limit, NULL);
}

static void leave_reader(int number)
{
    sigset_t itself;
    (void)number;
    if (one_wish_of_parent(noted))
        return;
    patience_ns -= monotonic_ns() - looked_ns - (busy_so_far() - busy_ns);
    if (patience_ns > 0) {
        limit_reader();
        return;
    }
    sigemptyset(&itself);
    sigaddset(&itself, noted);
    pthread_sigmask(SIG_UNBLOCK, &itself, NULL); // where it is taken from a descriptor
    raise(noted);
    raise(SIGTERM); // what was taken from a descriptor may be ignored otherwise
}

void one_wish_note(int number)
{
    noted = number;
    if (hands_over)
        limit_reader();
}

bool one_wish_is_noted(void)
{
    return noted;
}

void one_wish_hand_over(void)
{
    const struct sigaction leave = {.sa_handler = leave_reader, .sa_flags = SA_RESTART};
    if (hands_over)
        return;
    account = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    patience_ns = ONE_WISH_READER_MS * INT64_C(1000000);
    sigaction(SIGALRM, &leave, NULL);
    hands_over = 1;
    if (noted)
        limit_reader();
}

static void spare(int number)
{
    sigaction(number, &after_spared[number], NULL);
    one_wish_note(number);
}

void one_wish_spare_next(void)
{
    static const int ends[] = {SIGINT, SIGTERM};
    const struct sigaction spared = {.sa_handler = spare, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction now;
        if (sigaction(ends[i], NULL, &now) < 0 || now.sa_handler == SIG_IGN ||
            now.sa_handler == spare)
            continue;
        after_spared[ends[i]] = now;
        sigaction(ends[i], &spared, NULL);
    }
}
