// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_backend.h"

#include <stdio.h>

void capture_warn(struct capture *capture, const char *text)
{
    if (progress_is_heard())
        fprintf(stderr, "warning: %s\n", text);
    json_array_append_new(capture->warnings, json_string(text));
}

uint64_t backend_keeps_nothing(const void *state)
{
    (void)state;
    return 0;
}

int backend_needs_no_cut(void *state, const char *out, unsigned number,
                         struct capture_segment *segment, struct error *err)
{
    (void)state;
    (void)out;
    (void)number;
    (void)segment;
    (void)err;
    return 0;
}

json_t *backend_has_figures_at_its_end(void *state, json_t *dropped)
{
    (void)state;
    (void)dropped;
    return NULL;
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

void backend_records_no_calls(void *state, uint32_t process)
{
    (void)state;
    (void)process;
}

void backend_watches_cores(void *state, uint32_t process, uint16_t port)
{
    (void)port;
    (void)state;
    (void)process;
}

uint32_t backend_knows_no_thread(void *state, uint64_t namespace, uint32_t inside)
{
    (void)state;
    (void)namespace;
    (void)inside;
    return 0;
}

int backend_records_always(void *state, bool on, struct error *err)
{
    (void)state;
    (void)on;
    (void)err;
    return 0;
}

void backend_has_no_budget(void *state, uint64_t ns)
{
    (void)state;
    (void)ns;
}

int backend_takes_no_snapshot(struct capture *capture, void *state, int *number, struct error *err)
{
    (void)capture;
    (void)state;
    (void)number;
    (void)err;
    return 0;
}
