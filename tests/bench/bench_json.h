// SPDX-License-Identifier: MIT
//
// The figures of a benchmark of decoding, as $BUILD/bench/<name>.json (those of the load generator
// have bench.h, which needs two hosts).
#ifndef BENCH_BENCH_JSON_H
#define BENCH_BENCH_JSON_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct bench_json {
    char path[4200];
    FILE *file;
    int metrics;
};

// Makes the folder too: a benchmark started by hand may be the first. -1, and said on stderr, when
// the file cannot be written.
static inline int bench_json_open(struct bench_json *json, const char *name)
{
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    *json = (struct bench_json){0};
    snprintf(json->path, sizeof json->path, "%.4000s/bench", build);
    mkdir(json->path, 0777);
    snprintf(json->path, sizeof json->path, "%.4000s/bench/%.100s.json", build, name);
    json->file = fopen(json->path, "we");
    if (!json->file) {
        fprintf(stderr, "cannot write %s: %s; BUILD names the folder of the build\n", json->path,
                strerror(errno));
        return -1;
    }
    fprintf(json->file, "{\"name\": \"%s\", \"metrics\": {", name);
    return 0;
}

// Values ascend; the one in their middle stands for them.
static inline void bench_json_add(struct bench_json *json, const char *name, const char *unit,
                                  const double *values, size_t count)
{
    fprintf(json->file,
            "%s\n    \"%s\": {\"value\": %.6g, \"unit\": \"%s\", \"runs\": %zu, \"min\": %.6g, "
            "\"max\": %.6g}",
            json->metrics++ ? "," : "", name, values[count / 2], unit, count, values[0],
            values[count - 1]);
}

static inline int bench_json_close(struct bench_json *json)
{
    int failed = fprintf(json->file, "\n}}\n") < 0;
    if (fclose(json->file) == 0 && !failed)
        return 0;
    fprintf(stderr, "cannot write all of %s\n", json->path);
    return -1;
}

#endif
