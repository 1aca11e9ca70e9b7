#!/usr/bin/env bash
# Real faults on the real kernel, a few of them, quickly: most messages that they held up are blamed
# on the right cause. test_long_faults.sh asks all of them and for more.
. tests/faults/faults_lib.sh
need_faults
print_header
# Of the second a bystander is there, who uses all that is left of the core: he held nobody up.
for case in "hog on A" "lock held while sleeping+" "delayed softirq"; do
    class=${case%+}
    BYSTANDER=${case#"$class"}
    judged_tries score_try "$class" 1s 0.9 0.25 0.9 0 || fail "$case: $scores"
done
check_nothing_left "$work/run" ""
