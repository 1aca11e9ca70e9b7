#!/usr/bin/env bash
# Every command of the program has a man page, which the first page names, every option that --help
# lists stands in it, and it is set without a warning.
set -eu
program=$BUILD/taillight
missing=0 checked=0
for command in $("$program" --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p'); do
    page=docs/man/taillight-$command.1
    if [ ! -e "$page" ]; then
        echo "$page is missing"
        missing=$((missing + 1))
        continue
    fi
    grep -q "^\.Xr taillight-$command 1" docs/man/taillight.1 || {
        echo "docs/man/taillight.1 does not name $command"
        missing=$((missing + 1))
    }
    for option in $("$program" "$command" --help | grep -oE '^  (-[a-zA-Z], |    )--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        checked=$((checked + 1))
        if ! sed 's/\\-/-/g' "$page" | grep -qE -- "(^|[^a-z-])${option}([^a-z-]|\$)"; then
            echo "$page does not name $option"
            missing=$((missing + 1))
        fi
    done
done
warnings=$(groff -mdoc -ww -z -Tutf8 docs/man/*.1 2>&1)
[ -z "$warnings" ] || { echo "$warnings"; missing=$((missing + 1)); }
echo "$checked options looked at, $missing missing from the manual"
[ $missing -eq 0 ] && [ $checked -gt 0 ]
