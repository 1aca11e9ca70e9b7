// SPDX-License-Identifier: MIT
//
// What people write on a command line of a workload: distributions, arrivals, patterns of the rate,
// and a distribution's table of values. Whatever is taken can be written down and read again to the
// same effect. The input: which of them, then the text.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workloads/distribution_text.h"
#include "workloads/lab/lab_fault.h"
#include "workloads/rate_pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right)
        abort();
}

static void check_distribution(const char *text, enum distribution_unit unit)
{
    struct distribution first, second;
    struct error err;
    char written[600], again[600];
    if (distribution_parse(text, unit, &first, &err) < 0)
        return;
    distribution_format(&first, unit, written, sizeof written);
    check(distribution_parse(written, unit, &second, &err) == 0);
    check(strcmp(written, distribution_format(&second, unit, again, sizeof again)) == 0);
    check(!isnan(distribution_quantile(&first, 0.5)));
    json_decref(distribution_to_json(&first, unit));
    distribution_free(&first);
    distribution_free(&second);
}

static void check_arrivals(const char *text)
{
    struct distribution gaps, again;
    struct error err;
    char written[600];
    if (arrivals_parse(text, &gaps, &err) < 0)
        return;
    double mean = distribution_mean(&gaps);
    check(mean > 0 && isfinite(mean));
    check(arrivals_parse(arrivals_format(&gaps, written, sizeof written), &again, &err) == 0);
    distribution_free(&gaps);
    distribution_free(&again);
}

static void check_pattern(const char *text)
{
    struct rate_pattern pattern, again;
    struct error err;
    char written[600];
    if (rate_pattern_parse(text, &pattern, &err) < 0)
        return;
    check(rate_pattern_parse(rate_pattern_format(&pattern, written, sizeof written), &again,
                             &err) == 0);
    double whole = rate_pattern_integral(&pattern, 1), before = 0;
    check(whole > 0 && isfinite(whole));
    for (int i = 0; i <= 16; i++) {
        double x = rate_pattern_inverse(&pattern, whole * i / 16, before);
        check(x >= before && x <= 1);
        before = x;
    }
}

// The table of a distribution is a file.
static void check_table(const uint8_t *data, size_t size)
{
    char text[64];
    int fd = memfd_create("values", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(text, sizeof text, "empirical:/proc/self/fd/%d", fd);
    check_distribution(text, UNIT_BYTES);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[400];
    struct lab_fault fault = {0};
    struct error err;
    if (size < 1)
        return 0;
    unsigned which = data[0] % 8;
    if (which >= 6) {
        check_table(data + 1, size - 1);
        return 0;
    }
    if (size > sizeof text || memmem(data + 1, size - 1, "empirical", 9)) // no files but ours
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (which < 3)
        check_distribution(text, which == 0 ? UNIT_NONE : which == 1 ? UNIT_BYTES : UNIT_NS);
    else if (which == 3)
        check_arrivals(text);
    else if (which == 4)
        check_pattern(text);
    else if (lab_fault_parse(text, &fault, &err) == 0)
        check(fault.kind != LAB_FAULT_NONE && fault.length_ns > 0 &&
              fault.every_ns >= fault.length_ns);
    return 0;
}
