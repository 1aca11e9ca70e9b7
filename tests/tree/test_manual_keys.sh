#!/usr/bin/env bash
# The manual's list of an experiment's keys is what the program prints of its tables, every key has
# help, and so has every key of the JSON Schema. With --write, the list is put into the manual.
set -eu
page=docs/man/taillight-run.1
keys=$("$BUILD/taillight" run --help-keys)
begin='^\.\\" The next lines are printed by `taillight run --help-keys`'
if [ "${1:-}" = --write ]; then
    {
        sed -n "1,/$begin/p" $page
        echo '.Bd -literal'
        sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/" <<<"$keys"
        sed -n "/$begin/,\$ { /^\.Ed/,\$p }" $page
    } >$page.new
    mv $page.new $page
fi
if ! diff <(sed -n "/$begin/,/^\.Ed/p" $page | sed -e '1,2d;$d' -e 's/^\\&//' -e 's/\\-/-/g' -e 's/\\e/\\/g') \
    - <<<"$keys"; then
    echo "$page has other keys than the program; run: BUILD=$BUILD $0 --write"
    exit 1
fi
count=$(grep -cE '^ *(- )?[a-z_]+:' <<<"$keys")
"$BUILD/taillight" run --schema >"${TMPDIR:-/tmp}/keys-$$.json"
without=$(jq '[.. | objects | .properties? // empty | .[] | select((.description // "") == "")] | length' \
    "${TMPDIR:-/tmp}/keys-$$.json")
rm -f "${TMPDIR:-/tmp}/keys-$$.json"
[ "$without" = 0 ] || { echo "$without keys without help"; exit 1; }
echo "$count keys, all in the manual, all with help"
[ "$count" -gt 100 ]
