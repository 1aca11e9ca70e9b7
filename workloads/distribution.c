// SPDX-License-Identifier: MIT
#include "workloads/distribution.h"

#include <fcntl.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/input_file.h"

const char *distribution_name(enum distribution_kind kind)
{
    static const char *const names[DISTRIBUTION_KINDS] = {
        [DISTRIBUTION_FIXED] = "fixed",
        [DISTRIBUTION_UNIFORM] = "uniform",
        [DISTRIBUTION_EXPONENTIAL] = "exponential",
        [DISTRIBUTION_NORMAL] = "normal",
        [DISTRIBUTION_LOGNORMAL] = "lognormal",
        [DISTRIBUTION_PARETO] = "pareto",
        [DISTRIBUTION_GPD] = "gpd",
        [DISTRIBUTION_GEV] = "gev",
        [DISTRIBUTION_BIMODAL] = "bimodal",
        [DISTRIBUTION_EMPIRICAL] = "empirical",
    };
    return kind < DISTRIBUTION_KINDS ? names[kind] : "unknown";
}

// (e^(shape x) - 1) / shape, which is x for shape 0: GPD's and GEV's tails have no special case.
static double growth_scaled(double shape, double x)
{
    return fabs(shape) > 1e-12 ? expm1(shape * x) / shape : x;
}

static double table_quantile(const struct distribution_table *table, double p)
{
    return table->values[array_bound(0, table->count - 1, at, table->fractions[at] <= p)];
}

// Before values below 0 are set to 0.
static double raw_quantile(const struct distribution *d, double p)
{
    switch (d->kind) {
    case DISTRIBUTION_FIXED:
        return d->first;
    case DISTRIBUTION_UNIFORM:
        // GSL refuses an interval without width.
        return d->first + p * (d->second - d->first);
    case DISTRIBUTION_EXPONENTIAL:
        return gsl_cdf_exponential_Pinv(p, d->first);
    case DISTRIBUTION_NORMAL:
        return p > 0 ? d->first + gsl_cdf_gaussian_Pinv(p, d->second) : 0;
    case DISTRIBUTION_LOGNORMAL:
        return p > 0 ? gsl_cdf_lognormal_Pinv(p, log(d->first), d->second) : 0;
    case DISTRIBUTION_PARETO:
        return gsl_cdf_pareto_Pinv(p, d->second, d->first);
    case DISTRIBUTION_GPD: // Coles 2001, 4.2
        return d->first + d->second * growth_scaled(d->third, -log1p(-p));
    case DISTRIBUTION_GEV: // Coles 2001, 3.1
        return p > 0 ? d->first + d->second * growth_scaled(d->third, -log(-log(p))) : 0;
    case DISTRIBUTION_BIMODAL:
        if (d->first <= d->second)
            return p < 1 - d->third ? d->first : d->second;
        return p < d->third ? d->second : d->first;
    case DISTRIBUTION_EMPIRICAL:
        return table_quantile(d->table, p);
    case DISTRIBUTION_KINDS:
        break;
    }
    return NAN;
}

double distribution_quantile(const struct distribution *distribution, double p)
{
    return fmax(raw_quantile(distribution, p), 0);
}

bool distribution_is_bounded(const struct distribution *distribution)
{
    switch (distribution->kind) {
    case DISTRIBUTION_FIXED:
    case DISTRIBUTION_UNIFORM:
    case DISTRIBUTION_BIMODAL:
    case DISTRIBUTION_EMPIRICAL:
        return true;
    default:
        return false;
    }
}

double distribution_sample(const struct distribution *distribution, uint64_t *random)
{
    switch (distribution->kind) {
    case DISTRIBUTION_FIXED:
        return distribution->first;
    case DISTRIBUTION_EXPONENTIAL: // 1 less a fraction is exact, so log1p would say no more
        return -distribution->first * log(1 - random_fraction(random));
    default: // by inversion: one random number per value
        return distribution_quantile(distribution, random_fraction(random));
    }
}

static double negative_part(double p, void *context)
{
    return fmin(raw_quantile(context, p), 0);
}

// How much the mean grows by setting values below 0 to 0: the integral of those quantiles. Only
// normal and GEV have any, and GEV's is not known in closed form.
static double cut_off_mean(const struct distribution *distribution)
{
    struct distribution copy = *distribution;
    enum { INTERVALS = 1000 };
    gsl_function function = {negative_part, &copy};
    double low = 1e-300, high = 1, result = 0, error;
    if (raw_quantile(distribution, low) >= 0)
        return 0;
    for (unsigned i = 0; i < 200; i++) { // where the quantiles cross 0
        double middle = low + (high - low) / 2;
        if (raw_quantile(distribution, middle) < 0)
            low = middle;
        else
            high = middle;
    }
    gsl_integration_workspace *workspace = gsl_integration_workspace_alloc(INTERVALS);
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    if (workspace)
        gsl_integration_qags(&function, 0, low, 0, 1e-9, INTERVALS, workspace, &result, &error);
    gsl_set_error_handler(handler);
    gsl_integration_workspace_free(workspace);
    return -result;
}

static double gev_mean(const struct distribution *d)
{
    if (d->third >= 1)
        return INFINITY;
    double standard = fabs(d->third) > 1e-9 ? (tgamma(1 - d->third) - 1) / d->third : M_EULER;
    return d->first + d->second * standard;
}

double distribution_mean(const struct distribution *d)
{
    double sum = 0;
    switch (d->kind) {
    case DISTRIBUTION_FIXED:
    case DISTRIBUTION_EXPONENTIAL:
        return d->first;
    case DISTRIBUTION_UNIFORM:
        return (d->first + d->second) / 2;
    case DISTRIBUTION_NORMAL:
        return d->first * gsl_cdf_gaussian_P(d->first, d->second) +
               d->second * d->second * gsl_ran_gaussian_pdf(d->first, d->second);
    case DISTRIBUTION_LOGNORMAL:
        return d->first * exp(d->second * d->second / 2);
    case DISTRIBUTION_PARETO:
        return d->second > 1 ? d->first * d->second / (d->second - 1) : INFINITY;
    case DISTRIBUTION_GPD:
        return d->third < 1 ? d->first + d->second / (1 - d->third) : INFINITY;
    case DISTRIBUTION_GEV:
        return gev_mean(d) + cut_off_mean(d);
    case DISTRIBUTION_BIMODAL:
        return d->first * (1 - d->third) + d->second * d->third;
    case DISTRIBUTION_EMPIRICAL:
        for (size_t i = 0; i < d->table->count; i++)
            sum += d->table->values[i] *
                   (d->table->fractions[i] - (i ? d->table->fractions[i - 1] : 0));
        return sum;
    case DISTRIBUTION_KINDS:
        break;
    }
    return NAN;
}

void distribution_free(struct distribution *distribution)
{
    struct distribution_table *table = distribution->table;
    if (!table)
        return;
    free(table->values);
    free(table->fractions);
    free(table->path);
    free(table);
    distribution->table = NULL;
}

// --- which key -----------------------------------------------------------------------------------

// expm1(x) / x and log1p(x) / x, continuous at 0, so that exponent 1 needs no case of its own.
static double expm1_over(double x)
{
    return fabs(x) > 1e-8 ? expm1(x) / x : 1 + x / 2 * (1 + x / 3);
}

static double log1p_over(double x)
{
    return fabs(x) > 1e-8 ? log1p(x) / x : 1 - x * (0.5 - x / 3);
}

// The hat x^-s, its integral from 1, and the inverse of that.
static double hat_density(double exponent, double x)
{
    return exp(-exponent * log(x));
}

static double hat_integral(double exponent, double x)
{
    return expm1_over((1 - exponent) * log(x)) * log(x);
}

static double hat_integral_inverse(double exponent, double integral)
{
    double t = integral * (1 - exponent);
    return exp(log1p_over(t < -1 ? -1 : t) * integral); // rounding may reach below -1
}

void rank_sampler_init(struct rank_sampler *sampler, const struct popularity *popularity,
                       uint64_t count)
{
    double s = popularity->exponent;
    *sampler = (struct rank_sampler){.popularity = *popularity, .count = count};
    if (popularity->kind != POPULARITY_ZIPF)
        return;
    sampler->integral_low = hat_integral(s, 1.5) - 1;
    sampler->integral_high = hat_integral(s, (double)count + 0.5);
    sampler->accept_below = 2 - hat_integral_inverse(s, hat_integral(s, 2.5) - hat_density(s, 2));
}

uint64_t rank_sample_zipf(const struct rank_sampler *sampler, uint64_t *random)
{
    double s = sampler->popularity.exponent, count = (double)(int64_t)sampler->count;
    for (;;) {
        double u = sampler->integral_high +
                   random_fraction(random) * (sampler->integral_low - sampler->integral_high);
        double x = hat_integral_inverse(s, u);
        double k = floor(x + 0.5);
        k = k < 1 ? 1 : k > count ? count : k;
        if (k - x <= sampler->accept_below || u >= hat_integral(s, k + 0.5) - hat_density(s, k))
            return (uint64_t)k - 1;
    }
}

double popularity_probability(const struct popularity *popularity, uint64_t count, uint64_t rank)
{
    if (popularity->kind == POPULARITY_UNIFORM)
        return 1 / (double)count;
    double sum = 0;
    for (uint64_t k = count; k > 0; k--) // smallest first keeps the sum exact
        sum += hat_density(popularity->exponent, (double)k);
    return hat_density(popularity->exponent, (double)rank + 1) / sum;
}

// --- empirical distributions ---------------------------------------------------------------------
// Empirical distributions: values that were seen, from a CSV file.

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
    char *at = line + (number == 1 ? input_mark_bytes(line, strlen(line)) : 0);
    at += strspn(at, " \t\r\n");
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
    int fd = input_open_any(path, NULL);
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
