// SPDX-License-Identifier: MIT
#include "base/patience.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/process.h"

enum { LOOK_NS = 20000000 };

struct work {
    patience_fn *function;
    void *context;
};

static void *work_do(void *argument)
{
    struct work work = *(struct work *)argument;
    free(argument);
    return (void *)(intptr_t)work.function(work.context);
}

bool patience_call(patience_fn *function, void *context, int *result)
{
    pthread_t thread;
    void *returned;
    if (process_is_interrupted())
        return false;
    struct work *work = malloc(sizeof *work);
    if (work)
        *work = (struct work){function, context};
    if (!work || pthread_create(&thread, NULL, work_do, work) != 0) { // then without a way out
        free(work);
        *result = function(context);
        return true;
    }
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_timedjoin_np(thread, &returned, &until) == 0) {
            *result = (int)(intptr_t)returned;
            return true;
        }
        if (process_is_interrupted()) {
            pthread_detach(thread);
            return false;
        }
    }
}
