// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_backend.h"

#include <stdio.h>

void capture_warn(struct capture *capture, const char *text)
{
    fprintf(stderr, "warning: %s\n", text);
    json_array_append_new(capture->warnings, json_string(text));
}

int backend_needs_no_disabling(void *state, struct error *err)
{
    (void)state;
    (void)err;
    return 0;
}

void backend_adds_no_core(void *state, cpu_set_t *cores)
{
    (void)state;
    (void)cores;
}

int backend_has_fixed_cores(void *state, const cpu_set_t *cores, struct error *err)
{
    (void)state;
    (void)cores;
    (void)err;
    return 0;
}

int backend_takes_no_snapshot(struct capture *capture, void *state, int *number, struct error *err)
{
    (void)capture;
    (void)state;
    (void)number;
    (void)err;
    return 0;
}
