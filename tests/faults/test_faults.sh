#!/usr/bin/env bash
# Real faults on the real kernel, a few of them, quickly: most messages that they held up are blamed
# on the right cause. test_long_faults.sh asks all of them and for more.
. tests/faults/faults_lib.sh
need_faults
print_header
# The second time a bystander is there, who uses all that is left of the core: he held nobody up.
for case in "hog on A" "lock held while sleeping" "lock held while sleeping+" "delayed softirq" "another server"; do
    class=${case%+}
    BYSTANDER=${case#"$class"}
    for attempt in 1 2 3; do # a busy machine gets two more chances
        scores=$(fault_score "$class" 1s) || { echo "$scores"; exit 1; }
        print_scores "$scores"
        good_enough "$scores" 0.9 0.25 0.9 0 "$(column "$class" 6)" && continue 2
    done
    fail "$case: $scores"
done
check_nothing_left "$work/run" ""
