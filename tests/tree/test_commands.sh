#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The command table as one meets it: help and version by every usual word, each listed command's
# help, and what is said to a misspelt command or option.
set -u
dir=$(mktemp -d /tmp/test-commands-XXXXXX)
trap 'rm -rf "$dir"' EXIT
taillight=${BUILD:-build}/taillight
fail() {
    echo "FAIL: $*"
    exit 1
}
expect() { # STATUS WORDS ARGUMENTS...
    local said status
    said=$("$taillight" "${@:3}" 2>&1)
    status=$?
    [ $status = "$1" ] && [[ $said == *"$2"* ]] || fail "${*:3}: exit $status, not $1 with \"$2\": $said"
}
for word in -h --help help; do expect 0 'usage: taillight COMMAND' $word; done
for word in -V --version version; do expect 0 'taillight 0.' $word; done
expect 2 'usage: taillight COMMAND'
expect 2 'did you mean `load`?' laod
expect 2 'did you mean `history`?' hist
expect 2 'frobnicate: unknown command; see taillight --help' frobnicate
expect 2 'did you mean `--duration`?' load --duraton 5
# What cannot be printed is said, unless nobody wants it.
for words in help version 'load --help'; do
    # shellcheck disable=SC2086
    said=$("$taillight" $words 2>&1 >/dev/full)
    [ $? = 1 ] && [[ $said == *'not all that was printed could be written: No space left on device'* ]] || fail "$words, to a full disk: $said"
    # shellcheck disable=SC2086
    said=$("$taillight" $words 2>&1 >&-) && [ -z "$said" ] || fail "$words, without an output: $said"
    # shellcheck disable=SC2086
    { "$taillight" $words 2>&1 >&3 | cat >"$dir/said"; } 3> >(exit) # its reader has left
    [ ! -s "$dir/said" ] || fail "$words, to nobody: $(cat "$dir/said")"
done
commands=$("$taillight" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 8 ] || fail "commands: $commands"
for command in $commands; do
    expect 0 "usage: taillight $command" "$command" -h
    expect 0 "usage: taillight $command" "$command" --help
    expect 0 "usage: taillight $command" help "$command"
    expect 0 'Exit codes: 0' "$command" -h
    for width in 50 80 132; do # one word may be longer
        long=$(COLUMNS=$width "$taillight" "$command" -h | awk -v width=$width 'length > width && NF > 1')
        [ -z "$long" ] || fail "$command --help goes beyond $width columns: $long"
    done
    one=$(COLUMNS=1000 "$taillight" "$command" -h | sed -n '3s/^[A-Z].*\.$/a sentence/p')
    [ "$one" = 'a sentence' ] || fail "$command --help does not begin with a sentence"
    [ "$("$taillight" "$command" -h </dev/null)" = "$(COLUMNS=80 "$taillight" "$command" -h)" ] || fail "$command: not 80 columns in a pipe"
done
