// SPDX-License-Identifier: MIT
//
// Empirical distributions: values that were seen, from a CSV file.
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "workloads/distribution.h"

enum { LINES_MAX = 10000000, FILE_BYTES_MAX = 256 << 20 };

struct weighted {
    double value, weight;
};

struct weighted_array ARRAY_OF(struct weighted);

// A number that is finite and not negative. *end is moved behind it.
static bool read_number(char **end, double *out)
{
    char *begin = *end;
    *out = strtod(begin, end);
    return *end > begin && isfinite(*out) && *out >= 0;
}

static int read_line(const char *path, size_t number, char *line, struct weighted_array *array,
                     struct error *err)
{
    struct weighted one = {.weight = 1};
    char *at = line + strspn(line, " \t\r\n");
    if (!*at || *at == '#')
        return 0;
    bool good = read_number(&at, &one.value);
    at += strspn(at, " \t");
    if (good && *at == ',') {
        at++;
        good = read_number(&at, &one.weight);
    }
    at += strspn(at, " \t\r\n");
    if (!good || *at)
        return error_set(err, ERROR_INPUT,
                         "%s:%zu: not a value or \"value,weight\", both numbers of 0 or more", path,
                         number);
    if (array->count == LINES_MAX || array_push(array, one) < 0)
        return error_set(err, ERROR_INPUT, "%s: more than %d values are not taken", path,
                         LINES_MAX);
    return 0;
}

static int compare_values(const void *a, const void *b)
{
    double left = ((const struct weighted *)a)->value, right = ((const struct weighted *)b)->value;
    return order_of(left, right);
}

static int make_table(const char *path, struct weighted_array *array,
                      struct distribution *distribution, struct error *err)
{
    double sum = 0, below = 0;
    for (size_t i = 0; i < array->count; i++)
        sum += array->items[i].weight;
    if (!(sum > 0) || !isfinite(sum))
        return error_set(err, ERROR_INPUT,
                         "%s: there must be a value, and the weights must add up to more than 0",
                         path);
    array_sort(array, compare_values);
    struct distribution_table *table = calloc(1, sizeof *table);
    *distribution = (struct distribution){.kind = DISTRIBUTION_EMPIRICAL, .table = table};
    if (table) {
        table->values = calloc(array->count, sizeof *table->values);
        table->fractions = calloc(array->count, sizeof *table->fractions);
        table->path = strdup(path);
    }
    if (!table || !table->values || !table->fractions || !table->path) {
        distribution_free(distribution);
        return error_set(err, ERROR_FAILED, "out of memory for the values of %s", path);
    }
    for (size_t i = 0; i < array->count; i++) {
        below += array->items[i].weight;
        if (array->items[i].weight > 0) { // what has no weight is never drawn
            table->values[table->count] = array->items[i].value;
            table->fractions[table->count++] = below / sum;
        }
    }
    table->fractions[table->count - 1] = 1; // exactly 1, despite rounding
    return 0;
}

// Reading a device or a pipe might never end, or never begin.
static FILE *open_regular(const char *path, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        error_set_errno(err, ERROR_INPUT, "cannot open the values %s", path);
    else if (!S_ISREG(status.st_mode) || status.st_size > FILE_BYTES_MAX)
        error_set(err, ERROR_INPUT, "the values %s are no regular file of at most %d MiB", path,
                  FILE_BYTES_MAX >> 20);
    else
        return fdopen(fd, "r");
    if (fd >= 0)
        close(fd);
    return NULL;
}

int distribution_load(const char *path, struct distribution *distribution, struct error *err)
{
    struct weighted_array array = {0};
    char *line = NULL;
    size_t line_bytes = 0, number = 0;
    FILE *file = open_regular(path, err);
    if (!file)
        return -ERROR_INPUT;
    int result = 0;
    while (result == 0 && getline(&line, &line_bytes, file) >= 0)
        result = read_line(path, ++number, line, &array, err);
    if (result == 0 && ferror(file))
        result = error_set_errno(err, ERROR_INPUT, "cannot read the values %s", path);
    fclose(file);
    free(line);
    if (result == 0)
        result = make_table(path, &array, distribution, err);
    array_free(&array);
    return result;
}
