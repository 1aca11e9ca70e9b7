#!/usr/bin/env bash
# A folder may include only from the floors below it, and the three side by side on floor 3 never
# from one another (docs/architecture.md). At the top nothing stands beside them but what must.
set -eu
declare -A floor=([base]=1 [workloads]=2 [loadgen]=3 [profiler]=3 [shim]=3 [analysis]=4
    [experiments]=5)
checked=0 wrong=0
for folder in "${!floor[@]}"; do
    while IFS=: read -r file line text; do
        [[ $text =~ \"([a-z]+)/ ]] && target=${BASH_REMATCH[1]}
        checked=$((checked + 1))
        [ "$target" = "$folder" ] && continue
        if [ -z "${floor[$target]:-}" ] || [ "${floor[$target]}" -ge "${floor[$folder]}" ]; then
            echo "$file:$line: $folder (floor ${floor[$folder]}) includes $target:$text"
            wrong=$((wrong + 1))
        fi
    done < <(grep -rnE '^#[[:space:]]*include "[a-z]+/' --include='*.[ch]' "$folder")
done
# The shim lives in other people's processes: header-only parts of base, and nothing else.
for include in $(grep -hoE '^#include "[^"]+"' shim/preload*.[ch] 2>/dev/null | sort -u | cut -d'"' -f2); do
    checked=$((checked + 1))
    case "$include" in
        shim/*) ;;
        base/*) if [ -e "${include%.h}.c" ]; then
                echo "the preloaded library includes $include, which is not header-only"
                wrong=$((wrong + 1))
            fi ;;
        *) echo "the preloaded library includes $include"; wrong=$((wrong + 1)) ;;
    esac
done
while read -r name; do
    case "$name" in
        Makefile | README.md | LICENSE | taillight.c | docs | tests | .*) ;;
        *) [ -n "${floor[$name]:-}" ] || { echo "at the top stands $name"; wrong=$((wrong + 1)); } ;;
    esac
done < <(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u)
echo "$checked includes looked at, $wrong against the floors"
[ $wrong -eq 0 ] && [ $checked -gt 20 ]
