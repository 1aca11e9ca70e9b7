#!/usr/bin/env bash
# What bash completes is what --help lists: every command, and every option of each.
set -eu
program=$BUILD/taillight
. docs/completions/bash/taillight
completed() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _taillight
    printf '%s\n' "${COMPREPLY[@]}" | sort
}
commands=$("$program" --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
diff <(sort <<<"$commands") <(completed "$program" '')
[ "$(completed "$program" cap)" = "$(printf 'capsule\ncapture')" ] || { echo "cap"; exit 1; }
options=0
for command in $commands; do
    listed=$("$program" "$command" --help | sed -n '/^Options:/,$p' | grep -oE '^  (-[a-zA-Z], |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort)
    diff <(echo "$listed") <(completed "$program" "$command" --)
    options=$((options + $(wc -l <<<"$listed")))
done
[ -z "$(completed "$program" run x)" ] || { echo "a file is not left to bash"; exit 1; }
echo "$(wc -w <<<"$commands") commands, $options options"
