// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_backend.h"

#define CAPTURE_BACKEND_ADDRESS(name) &backend_##name,
const struct capture_backend *const capture_backends[CAPTURE_BACKENDS_COUNT] = {
    CAPTURE_BACKENDS(CAPTURE_BACKEND_ADDRESS)};

const char *capture_choice_name(unsigned index)
{
    return index == 0                            ? "auto"
           : index <= CAPTURE_BACKENDS_COUNT     ? capture_backends[index - 1]->name
           : index == CAPTURE_BACKENDS_COUNT + 1 ? "none"
                                                 : NULL;
}

const struct capture_backend *capture_choice_backend(unsigned index)
{
    return index > 0 && index <= CAPTURE_BACKENDS_COUNT ? capture_backends[index - 1] : NULL;
}

bool capture_traces(unsigned index)
{
    const struct capture_backend *backend = capture_choice_backend(index);
    return backend && backend->keys;
}

bool capture_choice_records(unsigned index)
{
    return index <= CAPTURE_BACKENDS_COUNT;
}

const char *capture_calls_name(unsigned index)
{
    return index == CAPTURE_CALLS_AUTO     ? "auto"
           : index == CAPTURE_CALLS_KERNEL ? "kernel"
           : index == CAPTURE_CALLS_NONE   ? "none"
                                           : NULL;
}

void capture_backends_examine(struct doctor_items *items)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        capture_backends[i]->examine(items);
}
