#!/usr/bin/env bash
# Every command of the program has a man page, which the first page names, every option that --help
# lists stands in it, both list the same exit codes, and it is set without a warning.
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
    codes() { grep -oE '[0-9]' | sort | tr '\n' ' '; }
    help=$("$program" "$command" --help)
    text=$(sed 's/\\-/-/g' "$page")
    helped=$(sed -n '/^Exit codes:/,/^$/p' <<<"$help" | tr '\n' ' ' | grep -oE '(Exit codes:|;) [0-9] ' | codes)
    manual=$(sed -n '/^\.Sh EXIT STATUS/,/^\.Sh [^E]\|^\.Sh EXA/p' "$page" | grep -oE '(^\.It|;|^) ?[0-9]( |$)' | codes) # a list, or a sentence
    [ -n "$helped" ] && [ "$helped" = "$manual" ] || {
        echo "$command: exit codes are $helped in --help, $manual in $page"
        missing=$((missing + 1))
    }
    for option in $(grep -oE '^  (-[a-zA-Z], |    )--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+'); do
        checked=$((checked + 1))
        if ! [[ $text =~ (^|[^a-z-])$option([^a-z-]|$) ]]; then
            echo "$page does not name $option"
            missing=$((missing + 1))
        fi
    done
done
warnings=$(groff -mdoc -ww -z -Tutf8 docs/man/*.1 2>&1)
[ -z "$warnings" ] || { echo "$warnings"; missing=$((missing + 1)); }
echo "$checked options looked at, $missing missing from the manual"
[ $missing -eq 0 ] && [ $checked -gt 0 ]
