#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path, with all that test_long_headline.sh asks for, where the server's perf is a newer one than this machine's: the
# recording is that one's, and is decoded as well.
# Time limit: 1800 s
newer=$(tests/lab/fetch_perf.sh "${BUILD:=build}") || { tail -n 1 <<<"$newer"; exit 77; }
version=$("$newer" --version)
[ "$version" != "$(perf --version)" ] || { echo "this machine's perf is no older: $version"; exit 77; }
BRINGING=(-p "$newer" -f "$newer") AT_SERVER='ln -sf /guest/perf /usr/bin/perf' # -p for its libraries
. tests/lab/test_long_headline.sh
# perf's own header says who wrote it.
grep -a -q -F "${version#perf version }" "$work/run/server/perf.data/data" || fail "the recording is not that of $version"
echo "by $version"
