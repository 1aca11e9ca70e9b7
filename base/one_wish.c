// SPDX-License-Identifier: MIT
#include "base/one_wish.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

void one_wish_take_rest(const sigset_t *signals, int64_t told_ns)
{
    for (;;) {
        const int64_t left_ns = told_ns + ONE_WISH_MS * INT64_C(1000000) - monotonic_ns();
        const struct timespec wait = {.tv_nsec = left_ns > 0 ? left_ns : 0};
        if (sigtimedwait(signals, NULL, &wait) < 0 && errno != EINTR)
            return;
    }
}
