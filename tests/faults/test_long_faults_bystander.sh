#!/usr/bin/env bash
# The same faults and the same answers beside a program of the lowest priority that uses all that is
# left of the server's core, and is blamed for a hundredth at most: being on the core is no cause.
BYSTANDER=1
. tests/faults/test_long_faults.sh
