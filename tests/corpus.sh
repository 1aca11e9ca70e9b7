#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The small corpora in the tree (tests/test_corpora.c):
#   corpus.sh unpack FILE FOLDER    writes the inputs of FILE into FOLDER, for a fuzzer to begin from
#   corpus.sh pack FUZZER FILE      writes FILE from FUZZER.corpus: the fewest inputs that reach what
#                                   all of them reach, the shortest of these first, up to 12 KiB
set -eu
case "$1" in
    unpack)
        [ -f "$2" ] || exit 0
        mkdir -p "$3"
        number=0
        while read -r line; do
            number=$((number + 1))
            base64 -d <<<"$line" >"$3/tree-$number"
        done <"$2"
        ;;
    pack)
        kept=$(mktemp -d)
        trap 'rm -rf "$kept"' EXIT
        "$2" -merge=1 -set_cover_merge=1 -max_len=512 -verbosity=0 "$kept" "$2.corpus" 2>/dev/null ||
            "$2" -merge=1 -max_len=512 -verbosity=0 "$kept" "$2.corpus" 2>/dev/null
        room=12288
        find "$kept" -type f -printf '%s %p\n' | sort -n | while read -r bytes path; do
            room=$((room - bytes))
            [ $room -ge 0 ] || break
            base64 -w0 "$path"
            echo
        done >"$3"
        ;;
    *)
        echo 'usage: corpus.sh unpack FILE FOLDER | pack FUZZER FILE' >&2
        exit 2
        ;;
esac
