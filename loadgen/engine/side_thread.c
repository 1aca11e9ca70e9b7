// SPDX-License-Identifier: MIT
#include "loadgen/engine/side_thread.h"

#include <errno.h>
#include <time.h>

static void *side_main(void *argument)
{
    struct side_thread *side = argument;
    pthread_setname_np(pthread_self(), side->name);
    while (!atomic_load(&side->stop)) {
        side->look(side->context);
        nanosleep(&(struct timespec){.tv_nsec = side->every_ns}, NULL);
    }
    return NULL;
}

int side_thread_begin(struct side_thread *side, const cpu_set_t *cores, struct error *err)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (cores)
        pthread_attr_setaffinity_np(&attributes, sizeof *cores, cores);
    errno = pthread_create(&side->thread, &attributes, side_main, side);
    pthread_attr_destroy(&attributes);
    side->running = errno == 0;
    return side->running
               ? 0
               : error_set_errno(err, ERROR_FAILED, "cannot begin the thread %s", side->name);
}

void side_thread_end(struct side_thread *side)
{
    atomic_store(&side->stop, true);
    if (side->running)
        pthread_join(side->thread, NULL);
    side->running = false;
}
