// SPDX-License-Identifier: MIT
#include "tests/workloads/fuzz_codec.h"
#include "workloads/redis.h"

FUZZ_CODEC(redis_protocol)
