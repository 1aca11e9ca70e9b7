#!/usr/bin/env bash
# The documentation's tables of events, spans, causes and protocols are the program's own.
# With --write they are written anew (`make tables`). And what is to stand in a table of rows does:
# each protocol, kind of server and host, backend of a capture and BPF program.
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

listed() { # $1: where it is defined, $2: what is to be found in $3...
    grep -qE "$2" "${@:3}" && return
    echo "$1: no row in ${*:3}"
    wrong=$((wrong + 1))
}
while IFS=: read -r file name; do
    case $name in
    *_protocol) listed "$file" "^PROTOCOL\(${name%_protocol}," workloads/protocols/protocols.tbl.h ;;
    *) listed "$file" "_(KINDS|BACKENDS)\(ROW\).* ROW\(${name#*_}\)" experiments/*/*_kind.h experiments/*/*_backend.h ;;
    esac
done < <(grep -oHE '^const struct (protocol|[a-z]+_kind|capture_backend) [a-z0-9_]+ =' \
    workloads/protocols/*.c experiments/*/*.c | sed 's/const struct [a-z_]* //; s/ =$//')
# Of the capture of events: Time Capsule loads its own programs by their names.
while read -r name; do
    case $name in
    *_stand_in) row="^EVENT_PROGRAM\(${name%_stand_in},.*\"\)" ;; # with the function's name
    *) row="^EVENT_PROGRAM\($name," ;;
    esac
    listed "profiler/bpf: $name" "$row" profiler/bpf/events.tbl.h
done < <(grep -h -A1 '^SEC("[^"]*/' profiler/bpf/*.bpf.h profiler/bpf/events.bpf.c | sed -nE 's/^int (BPF_PROG\()?([a-z0-9_]+).*/\2/p')
echo "$checked files with tables, $wrong wrong"
[ $wrong -eq 0 ] && [ $checked -gt 0 ]
