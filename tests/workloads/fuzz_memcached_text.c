// SPDX-License-Identifier: MIT
#include "tests/workloads/fuzz_codec.h"
#include "workloads/memcached_text.h"

FUZZ_CODEC(memcached_text_protocol)
