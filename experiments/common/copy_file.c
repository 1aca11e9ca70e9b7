// SPDX-License-Identifier: MIT
#include "experiments/common/copy_file.h"

#include <sys/types.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/new_file.h"

static int copy_bytes(int from, int to)
{
    char chunk[65536];
    ssize_t got;
    while ((got = read(from, chunk, sizeof chunk)) > 0)
        for (ssize_t done = 0, took; done < got; done += took)
            if ((took = write(to, chunk + done, (size_t)(got - done))) < 0)
                return -1;
    return got < 0 ? -1 : 0;
}

int copy_file(const char *from, const char *to, struct error *err)
{
    int source = input_open(from, err);
    if (source < 0)
        return source;
    int copy = new_file_create(to, err), result = copy < 0 ? copy : 0;
    if (copy >= 0 && copy_bytes(source, copy) < 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot copy %s to %s", from, to);
    if (copy >= 0 && close(copy) < 0 && result == 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot write %s", to);
    close(source);
    return result;
}
