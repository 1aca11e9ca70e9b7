// SPDX-License-Identifier: MIT
#include "tests/workloads/fuzz_codec.h"
#include "workloads/memcached_meta.h"

FUZZ_CODEC(memcached_meta_protocol)
