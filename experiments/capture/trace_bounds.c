// SPDX-License-Identifier: MIT
#include "experiments/capture/trace_bounds.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static const uint64_t bytes_per_second[] = {
    [PROCESSOR_TRACE_LIGHT] = 50 << 20,
    [PROCESSOR_TRACE_NORMAL] = 120 << 20,
    [PROCESSOR_TRACE_FINE] = 300 << 20,
};

static unsigned long long mebibytes(uint64_t bytes)
{
    return (unsigned long long)bytes >> 20;
}

uint64_t trace_expected_bytes(enum processor_trace_detail detail, unsigned cores,
                              uint64_t duration_ns)
{
    double bytes = (double)bytes_per_second[detail] * cores * (double)duration_ns / 1e9;
    return bytes < 1e18 ? (uint64_t)bytes : (uint64_t)1e18;
}

int trace_bounds_check(const struct trace_bounds *bounds, uint64_t expected_bytes,
                       uint64_t free_bytes, const char *folder, struct error *err)
{
    uint64_t most = bounds->most_bytes && bounds->most_bytes < expected_bytes ? bounds->most_bytes
                                                                              : expected_bytes;
    if (most < bounds->held_bytes) // it would end as soon as it begins
        most = bounds->held_bytes;
    if (free_bytes >= bounds->reserve_bytes && free_bytes - bounds->reserve_bytes >= most)
        return 0;
    uint64_t left = free_bytes > bounds->reserve_bytes ? free_bytes - bounds->reserve_bytes : 0;
    return error_set(err, ERROR_INPUT,
                     "about %llu MiB of trace are expected, and the disk of %s has room for %llu "
                     "MiB beside the other logs; trace for a shorter time, fewer cores or with "
                     "less detail, or take snapshots",
                     mebibytes(most), folder, mebibytes(left));
}

uint64_t trace_recorded_bytes(const char *path)
{
    char inside[4400];
    struct stat status;
    uint64_t bytes = 0;
    DIR *folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? opendir(path) : NULL;
    if (!folder)
        return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        int length = snprintf(inside, sizeof inside, "%.4000s/%s", path, entry->d_name);
        if (length > 0 && (size_t)length < sizeof inside && lstat(inside, &status) == 0 &&
            S_ISREG(status.st_mode))
            bytes += (uint64_t)status.st_size;
    }
    closedir(folder);
    return bytes;
}

bool trace_bounds_reached(const struct trace_bounds *bounds, uint64_t recorded_bytes,
                          uint64_t free_bytes, char why[TRACE_WHY_BYTES])
{
    if (bounds->most_bytes && recorded_bytes >= bounds->most_bytes)
        snprintf(why, TRACE_WHY_BYTES, "it has %llu MiB, and %s%llu", mebibytes(recorded_bytes),
                 bounds->is_auto ? "unless intel_pt is asked for no more is taken than "
                                 : "no more was asked for than ",
                 mebibytes(bounds->most_bytes));
    else if (free_bytes < bounds->reserve_bytes + bounds->held_bytes)
        snprintf(why, TRACE_WHY_BYTES,
                 "%llu MiB are left on the disk, and kept free for the other logs and for what "
                 "perf has not written yet",
                 mebibytes(free_bytes));
    else
        return false;
    return true;
}
