// SPDX-License-Identifier: MIT
#include "analysis/decomposition/path_disk.h"

#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/disks.h"
#include "base/text.h"

struct disk_wait {
    struct path *path;
    const char *sleep; // what the thread sleeps in, "" where that is not known
};

static void add_disk_stage(const struct disk_request *request, enum disk_stage stage,
                           int64_t begin_ns, int64_t end_ns, void *context)
{
    const struct disk_wait *wait = context;
    char disk[64], name[CAUSE_NAME_BYTES] = "";
    disk_stage_name(wait->path->sweep.decomposer->in->server, request, stage, disk, sizeof disk);
    if (wait->path->wait)
        text_append(name, sizeof name, ", ");
    if (wait->sleep[0])
        text_append(name, sizeof name, "%s, ", wait->sleep);
    text_append(name, sizeof name, "%s%s", name[0] ? "" : "waiting for ", disk);
    path_add_wait(wait->path, name, begin_ns, end_ns);
}

bool path_add_disk_wait(struct path *path, const struct thread_period *period, const char *sleep)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    const struct disk_request *last =
        period->waking ? disk_request_of_waking(host, period->waking) : NULL;
    if (!last || last->done_ns < period->begin_ns || sleep_is_stop(sleep) ||
        (sleep[0] == '\0' && period->before->left == STINT_WAITS))
        return false;
    struct disk_wait wait = {.path = path, .sleep = sleep};
    path->sweep.decomposer->core = NO_CORE;
    disk_stages(host, last, period->begin_ns, period->end_ns, add_disk_stage, &wait);
    return true;
}
