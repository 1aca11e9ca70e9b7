// SPDX-License-Identifier: MIT
#include "tests/workloads/fuzz_codec.h"
#include "workloads/http.h"

FUZZ_CODEC(http_protocol)
