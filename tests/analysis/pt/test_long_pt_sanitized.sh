#!/usr/bin/env bash
# Every real capture decodes under AddressSanitizer and UBSan, in both ways, with the same figures;
# neither complains, and nothing leaks.
set -eu
data=${TAILLIGHT_DATA:-../shared/data}
sanitized=build-address-undefined
[ -d "$data/pt" ] || { echo "no captures under $data/pt; set TAILLIGHT_DATA to where they are"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs="pt/image/test_pt_patches perf/test_perf_data_captures code/test_code_image_captures perf/test_perf_data_streams"
wanted=$sanitized/taillight
for program in $programs; do
    wanted="$wanted $sanitized/tests/analysis/$program"
done
# shellcheck disable=SC2086 # they are several
make --no-print-directory -j"$(nproc)" SAN=address,undefined $wanted >"$work/build" ||
    { cat "$work/build"; exit 1; }
export BUILD=$sanitized TAILLIGHT_DATA=$data
export ASAN_OPTIONS=log_path=$work/complaint
export UBSAN_OPTIONS=log_path=$work/complaint:print_stacktrace=1
failed=0
for program in $programs; do
    "$sanitized/tests/analysis/$program" || [ $? -eq 77 ] || failed=1
done
for script in test_pt_captures test_long_pt_variants; do
    bash tests/analysis/pt/$script.sh || failed=1
done
for complaint in "$work"/complaint*; do
    [ -e "$complaint" ] || continue
    head -n 30 "$complaint"
    failed=1
done
exit $failed
