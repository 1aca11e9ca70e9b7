// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_state.h"

#include <stdio.h>

void capture_warn(struct capture *capture, const char *text)
{
    fprintf(stderr, "warning: %s\n", text);
    json_array_append_new(capture->warnings, json_string(text));
}
