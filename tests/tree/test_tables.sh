#!/usr/bin/env bash
# The documentation's tables of events, spans, causes and protocols are the program's own.
# With --write they are written anew (`make tables`).
set -eu
tables=${BUILD:-build}/tests/tree/tables
wrong=0 checked=0
for file in $(grep -rlE 'table: [a-z ]+;' docs README.md); do
    checked=$((checked + 1))
    written=$(mktemp)
    "$tables" <"$file" >"$written"
    if [ "${1:-}" = --write ]; then
        cat "$written" >"$file"
    elif ! diff -u "$file" "$written"; then
        echo "$file: a table differs from the program's: make tables"
        wrong=$((wrong + 1))
    fi
    rm "$written"
done
echo "$checked files with tables, $wrong wrong"
[ $wrong -eq 0 ] && [ $checked -gt 0 ]
