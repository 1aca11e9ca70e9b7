#!/usr/bin/env bash
# What tests/experiments/causes/situations.table wants to be told that helps is what the program says somewhere: the situations
# themselves are tried by `make check-long` alone, and words change.
set -eu
wrong=0 checked=0
while read -r words; do
    checked=$((checked + 1))
    grep -rhiqF --include='*.[ch]' -- "$words" analysis loadgen experiments || {
        echo "FAIL: nothing says \"$words\""
        wrong=$((wrong + 1))
    }
done < <(sed -n 's/^  helps ^\?//p' tests/experiments/causes/situations.table | tr '|' '\n' | sed 's/[()]//g; s/^none$//; /^$/d' | sort -u)
echo "$checked remedies, $wrong wrong"
[ $wrong -eq 0 ] && [ $checked -gt 10 ]
