// SPDX-License-Identifier: MIT
#include "experiments/remote/left_results.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_numbers.h"
#include "experiments/common/supervisor.h"

enum { FETCH_TIMEOUT_MS = 3600 * 1000, NAME_BYTES = 256 };

int left_results_find(struct keeper *keeper, const char *base, struct left_results *found,
                      struct error *err)
{
    char pattern[KEEPER_TEXT_BYTES];
    struct left_result one;
    snprintf(pattern, sizeof pattern, "%.200s/" KEEPER_LEFT "*", base);
    for (unsigned i = 0;; i++) {
        int result = keeper_find(keeper, pattern, i, one.path, err);
        if (result <= 0)
            return result;
        if (array_push(found, one) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
    }
}

// "server" of ".../taillight-left-RUN-server"; NULL: none of ours ends so.
static const char *part_of(const char *name)
{
    const char *part = strrchr(name, '-') + 1;
    for (const char *letter = part; *letter; letter++)
        if (!islower((unsigned char)*letter))
            return NULL;
    return *part ? part : NULL;
}

// Whether a host of that run had the directory after which the result is named.
static bool is_of_run(const json_t *experiment, const char *name)
{
    static const char ours[] = "/taillight-";
    const char *host;
    json_t *facts;
    json_object_foreach(json_object_get(experiment, "hosts"), host, facts)
    {
        char wanted[NAME_BYTES];
        const char *directory = json_string_value(json_object_get(facts, "directory"));
        const char *own = directory ? strrchr(directory, '/') : NULL;
        if (!own || strncmp(own, ours, sizeof ours - 1) != 0)
            continue;
        int length = snprintf(wanted, sizeof wanted, KEEPER_LEFT "%.200s-", own + sizeof ours - 1);
        if (strncmp(name, wanted, (size_t)length) == 0)
            return true;
    }
    return false;
}

// Where it goes; an empty text: nowhere.
static int choose_folder(const char *name, const char *into, char here[FAR_PATH_BYTES],
                         struct error *err)
{
    char path[FAR_PATH_BYTES];
    const char *part = part_of(name);
    snprintf(path, sizeof path, "%.380s/experiment.json", into);
    json_t *experiment = json_load_file(path, 0, NULL);
    int length = snprintf(here, FAR_PATH_BYTES, "%s/%s", into, name);
    if (experiment && part && is_of_run(experiment, name))
        length = snprintf(here, FAR_PATH_BYTES, "%s/%s", into, part);
    else if (experiment)
        here[0] = '\0';
    json_decref(experiment);
    if (length >= FAR_PATH_BYTES)
        return error_set(err, ERROR_INPUT, "--into: %s is too long a name", into);
    if (here[0] && mkdir(here, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", here);
    return 0;
}

int left_results_fetch(const struct far_host *far, struct keeper *keeper,
                       const struct left_result *left, const char *into, char here[FAR_PATH_BYTES],
                       struct error *err)
{
    const struct process_place place = {.log_path = far->log_path};
    struct process copy;
    int status = 0, result = choose_folder(strrchr(left->path, '/') + 1, into, here, err);
    if (result < 0 || !here[0])
        return result;
    result = far_host_fetch(far, left->path, here, FAR_PART_ALL, &place, &copy, err);
    if (result < 0)
        return result;
    result = process_wait(&copy, FETCH_TIMEOUT_MS, &status, err);
    process_stop(&copy, 0);
    if (result == 0)
        return error_set(err, ERROR_FAILED, "%s: %s does not come to an end", far->what,
                         left->path);
    if (result > 0 && status != 0)
        return supervisor_end_error(err, left->path, status, far->log_path);
    // What is here whole is removed there.
    return result < 0 ? result : keeper_adopt_directory(keeper, left->path, err);
}
