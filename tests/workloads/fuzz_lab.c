// SPDX-License-Identifier: MIT
#include "tests/workloads/fuzz_codec.h"
#include "workloads/lab.h"

FUZZ_CODEC(lab_protocol)
