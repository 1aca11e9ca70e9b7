#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# QEMU 10 with what a plugin for it is compiled against, unpacked under BUILD/lab, nothing of it
# installed and apt's own settings untouched: fetch_qemu.sh BUILD. Prints the folder. It is Debian 12's
# backport, since its own QEMU 7.2 lets no plugin read a register (API version 1; 4 is needed). Exit 77 and the
# reason when the packages cannot be had. A folder that is there is whole: it gets its name last.
set -eu
build=${1:?usage: fetch_qemu.sh BUILD}
skip() {
    echo "$*"
    exit 77
}
for tool in apt-get dpkg-deb curl xz; do
    command -v $tool >/dev/null || skip "the lab's QEMU is a Debian package, and there is no $tool"
done
. "$(dirname "$0")/debian_lib.sh"
[ "$(dpkg --print-architecture)" = amd64 ] || skip "the lab is for amd64"
mkdir -p "$build/lab"
cd "$build/lab"
exec 9>.lock
flock 9
if [ ! -d qemu ]; then
    new=$(mktemp -d "$PWD/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    debian_lists "$new" deb "$mirror" "$suite" deb-src "$mirror" "$suite" deb "$mirror" "${suite%-backports}"
    debian_unpack "$new" qemu-system-x86 qemu-system-common qemu-system-data libglib2.0-dev
    # Debian packs the plugin's header with the source only.
    source=$(debian_apt "$new" source --print-uris qemu 2>/dev/null | sed -n "s/^'\(.*\.orig\.tar\.xz\)'.*/\1/p")
    mkdir "$new/source"
    curl -fsSL --max-time 540 "$source" | xz -d |
        tar -C "$new/source" -x --wildcards '*/include/*/qemu-plugin.h' ||
        skip "the header of QEMU's plugins cannot be had: ${source:-no source package}"
    install -D -m 644 "$new"/source/*/include/*/qemu-plugin.h "$new/root/usr/include/qemu-plugin.h"
    version=$(sed -n 's/^#define QEMU_PLUGIN_VERSION //p' "$new/root/usr/include/qemu-plugin.h")
    [ "${version:-0}" -ge 4 ] || skip "the QEMU of $suite has plugins of API version $version; 4 is needed"
    "$new/root/usr/bin/qemu-system-x86_64" --version >/dev/null 2>"$new/log" ||
        skip "the QEMU of $suite does not run here: $(tail -n 1 "$new/log")"
    mv "$new/root" qemu
fi
echo "$PWD/qemu"
