// SPDX-License-Identifier: MIT
#include "tests/workloads/fuzz_codec.h"
#include "workloads/memcached_binary.h"

FUZZ_CODEC(memcached_binary_protocol)
