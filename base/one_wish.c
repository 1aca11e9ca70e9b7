// SPDX-License-Identifier: MIT
#include "base/one_wish.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"

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

// A timer of the process, not of a thread that would have to begin now.
static void limit_reader(void)
{
    const struct itimerval limit = {.it_value.tv_usec = ONE_WISH_READER_MS * 1000};
    setitimer(ITIMER_REAL, &limit, NULL);
}

static void leave_reader(int number)
{
    sigset_t itself;
    (void)number;
    if (one_wish_of_parent(noted))
        return;
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
