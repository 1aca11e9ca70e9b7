// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_input.h"

void run_input_close(struct run_input *input)
{
    log_reader_close(&input->samples);
    log_reader_close(&input->client_connections);
    run_loads_free(&input->other_loads);
    log_reader_close(&input->events);
    log_reader_close(&input->client_events);
    log_reader_close(&input->sockets);
    log_reader_close(&input->calls);
    log_reader_close(&input->shim_connections);
    run_segments_free(&input->segments);
    run_segments_free(&input->client_segments);
    array_free(&input->accepted_calls);
    array_free(&input->peer_calls);
    array_free(&input->accepted_connections);
    array_free(&input->peer_connections);
    datagrams_free(&input->datagrams);
    kernel_calls_free(&input->kernel_calls);
    clock_map_free(input->clock_map);
    clock_map_free(input->client_clock_map);
    json_decref(input->experiment);
    json_decref(input->load);
    json_decref(input->capture);
    json_decref(input->client_capture);
    json_decref(input->facts);
    *input = (struct run_input){0};
}
