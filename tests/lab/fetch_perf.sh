#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A perf that is newer than Debian 12's own 6.1, unpacked under BUILD/newer_perf and not installed: fetch_perf.sh BUILD. Prints
# the path of its program. It is Debian 12's backport. Exit 77 and the reason when it cannot be had. A folder that is there is
# whole: it gets its name last.
set -eu
build=$(cd "${1:?usage: fetch_perf.sh BUILD}" && pwd)
skip() {
    echo "$*"
    exit 77
}
for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null || skip "a newer perf is a Debian package, and there is no $tool"
done
. "$(dirname "$0")/debian_lib.sh"
exec 9>"$build/.newer_perf-lock"
flock 9
if [ ! -d "$build/newer_perf" ]; then
    new=$(mktemp -d "$build/newer-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    debian_lists "$new" deb "$mirror" "$suite"
    debian_unpack "$new" linux-perf
    mv "$new/root" "$build/newer_perf"
fi
said=$("$build/newer_perf/usr/bin/perf" --version 2>&1) || skip "the perf of $suite does not run here: $(tail -n 1 <<<"$said")"
echo "$build/newer_perf/usr/bin/perf"
