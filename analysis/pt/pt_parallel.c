// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_parallel.h"

#include <pthread.h>
#include <sched.h>

struct parallel {
    pt_parallel_work *work;
    void *context;
    size_t count;
    pthread_mutex_t lock; // guards what follows
    size_t next;
    size_t failed_at; // the index of the failure that is kept
    int result;
    struct error err;
};

unsigned pt_parallel_threads(unsigned asked)
{
    cpu_set_t cores;
    if (asked == 0 && sched_getaffinity(0, sizeof cores, &cores) == 0)
        asked = (unsigned)CPU_COUNT(&cores);
    if (asked == 0)
        return 1;
    return asked < PT_MOST_THREADS ? asked : PT_MOST_THREADS;
}

unsigned pt_parallel_worth(unsigned asked, uint64_t bytes, uint64_t bytes_a_thread)
{
    const unsigned threads = pt_parallel_threads(asked);
    const uint64_t most = 1 + bytes / bytes_a_thread;
    return asked || most > threads ? threads : (unsigned)most;
}

static void *parallel_thread(void *context)
{
    struct parallel *all = context;
    pthread_mutex_lock(&all->lock);
    while (all->result == 0 && all->next < all->count) {
        size_t index = all->next++;
        struct error err;
        pthread_mutex_unlock(&all->lock);
        int result = all->work(all->context, index, &err);
        pthread_mutex_lock(&all->lock);
        if (result < 0 && (all->result == 0 || index < all->failed_at)) {
            all->result = result;
            all->failed_at = index;
            all->err = err;
        }
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

int pt_parallel(size_t count, unsigned threads, pt_parallel_work *each, void *context,
                struct error *err)
{
    struct parallel all = {
        .work = each, .context = context, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t helpers[PT_MOST_THREADS];
    size_t most = pt_parallel_threads(threads), started = 0;
    most = most < count ? most : count;
    while (started + 1 < most && // this thread works too; fewer helpers only take longer
           pthread_create(&helpers[started], NULL, parallel_thread, &all) == 0)
        started++;
    parallel_thread(&all);
    for (size_t i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    pthread_mutex_destroy(&all.lock);
    if (all.result < 0)
        *err = all.err;
    return all.result;
}
