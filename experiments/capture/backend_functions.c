// SPDX-License-Identifier: MIT
//
// The `functions` backend of `taillight capture`: the kernel's own function tracer
// (profiler/trace/function_recorder.h).
#include "experiments/capture/capture_backend.h"
#include "profiler/trace/function_recorder.h"

enum { FUNCTIONS_BYTES = 16 << 20 }; // of each core

static int functions_check(const struct capture_options *options, bool chosen, struct error *err)
{
    return options->functions && !chosen
               ? error_set(err, ERROR_INPUT, "--functions is for --backend functions")
               : 0;
}

static int functions_start(struct capture *capture, bool needed, void **state, struct error *err)
{
    const struct function_tracer_settings settings = {.cores = capture->cores,
                                                      .patterns = capture->options.functions,
                                                      .buffer_bytes = FUNCTIONS_BYTES};
    struct function_recorder *recorder = NULL;
    (void)needed;
    int result = function_recorder_start(&settings, capture->options.out, &recorder, err);
    *state = recorder;
    return result;
}

static int functions_poll(void *state, struct error *err)
{
    return function_recorder_poll(state, err);
}

static int functions_disable(void *state, struct error *err)
{
    return function_recorder_disable(state, err);
}

static int functions_stop(struct capture *capture, void *state, json_t *dropped, json_t **document,
                          struct error *err)
{
    int result = function_recorder_stop(state, document, err);
    if (result < 0)
        return result;
    json_t *lost = json_object_get(*document, "dropped");
    if (json_integer_value(lost))
        capture_warn(capture,
                     "records of functions were lost: the kernel's buffers were full; trace fewer, "
                     "with --functions");
    json_object_set(dropped, "functions", lost);
    return 0;
}

static int functions_follow(void *state, const cpu_set_t *cores, struct error *err)
{
    int result = function_recorder_follow(state, cores, err);
    return result < 0 ? result : 1;
}

static void functions_free(void *state)
{
    function_recorder_free(state);
}

const struct capture_backend backend_functions = {
    .name = "functions",
    .help = "calls of chosen kernel functions, by the kernel's own tracer",
    .lack = "no kernel functions",
    .files = "functions.tlog",
    .examine = doctor_check_functions,
    .check = functions_check,
    .start = functions_start,
    .poll = functions_poll,
    .kept = backend_keeps_nothing,
    .ring_bytes = backend_keeps_nothing,
    .cut = backend_needs_no_cut,
    .so_far = backend_has_figures_at_its_end,
    .disable = functions_disable,
    .stop = functions_stop,
    .free = functions_free,
    .add_followed = backend_adds_no_core,
    .follow = functions_follow,
    .watch = backend_watches_cores,
    .leave_calls = backend_records_no_calls,
    .thread_here = backend_knows_no_thread,
    .turn = backend_records_always,
    .charge = backend_has_no_budget,
    .take_snapshot = backend_takes_no_snapshot,
};
