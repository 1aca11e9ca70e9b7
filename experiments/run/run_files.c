// SPDX-License-Identifier: MIT
//
// The files that a workload names (a recorded schedule, tables of values) are here; requests may be
// drawn on hosts behind ssh. Then they are copied into the run's folder, named by their contents,
// and the workload names them relative to it: workload/<sum>-<name>. So the same text holds in the
// run's folder and in the run's directory on each such host, which gets a copy.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/run/run_state.h"
#include "workloads/workload_files.h"

enum { SUM_TIMEOUT_MS = 60000, NAME_BYTES = 100 };

// workload/<the first 16 digits of its SHA-256>-<its own name, if that is plain>
static int choose_name(const char *path, char name[NAME_BYTES], struct error *err)
{
    char sums[5000];
    const char *const argv[] = {"sha256sum", "--", path, NULL};
    if (access(path, R_OK) < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot read the workload's file %s", path);
    int result = process_run(argv, NULL, SUM_TIMEOUT_MS, sums, sizeof sums, err);
    if (result < 0)
        return error_prefix(err, "the workload's file %s", path);
    const char *sum = sums + (*sums == '\\'); // so it marks a name with a newline
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    bool plain = strlen(own) < 60 && own[strspn(own, "abcdefghijklmnopqrstuvwxyz0123456789"
                                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-")] == '\0';
    if (strspn(sum, "0123456789abcdef") != 64)
        return error_set(err, ERROR_FAILED, "sha256sum says: %.80s", sums);
    snprintf(name, NAME_BYTES, "workload/%.16s%s%s", sum, plain ? "-" : "", plain ? own : "");
    return 0;
}

static int copy_bytes(int from, int to)
{
    char piece[65536];
    ssize_t got;
    while ((got = read(from, piece, sizeof piece)) > 0)
        for (ssize_t done = 0, took; done < got; done += took)
            if ((took = write(to, piece + done, (size_t)(got - done))) < 0)
                return -1;
    return got < 0 ? -1 : 0;
}

static int copy_file(const char *from, const char *to, struct error *err)
{
    int source = open(from, O_RDONLY | O_CLOEXEC), result = 0;
    if (source < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot read %s", from);
    int copy = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (copy < 0 || copy_bytes(source, copy) < 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot copy %s to %s", from, to);
    if (copy >= 0 && close(copy) < 0 && result == 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot write %s", to);
    close(source);
    return result;
}

static int rename_in_workload(struct run *run, const char *const *names, struct error *err)
{
    char *yaml = workload_to_yaml_with(&run->experiment->workload, names);
    if (!yaml)
        return error_set(err, ERROR_FAILED, "out of memory");
    int result =
        run_folder_write(&run->outcome->folder, "client/workload.yaml", yaml, strlen(yaml), err);
    free(yaml);
    return result;
}

int run_gather_files(struct run *run, struct error *err)
{
    const char *paths[WORKLOAD_FILES_MAX], *names[WORKLOAD_FILES_MAX];
    char text[WORKLOAD_FILES_MAX][NAME_BYTES], path[LOG_PATH_BYTES];
    size_t count = workload_files(&run->experiment->workload, paths);
    int result = 0;
    run->files_inside = count > 0;
    if (count == 0 || run->log.dry)
        return 0;
    if (mkdir(run_folder_path(&run->outcome->folder, "workload", path), 0755) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", path);
    for (size_t i = 0; i < count && result == 0; i++) {
        result = choose_name(paths[i], text[i], err);
        if (result == 0)
            result =
                copy_file(paths[i], run_folder_path(&run->outcome->folder, text[i], path), err);
        names[i] = text[i];
    }
    return result == 0 ? rename_in_workload(run, names, err) : result;
}
