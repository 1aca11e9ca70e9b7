#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Debian's cloud kernel for the guest of run_guest.sh, unpacked under BUILD/guest, nothing of it
# installed: fetch_kernel.sh BUILD [headers|newer]. Prints the folder that has vmlinuz and lib/modules
# (with `headers`, also what a module is built against; with `newer`, of the newest kernel that apt knows, Linux 6.4
# or newer). Exit 77 and the reason when the packages
# cannot be had. A folder that is there is whole: it gets its name last.
set -eu
build=${1:?usage: fetch_kernel.sh BUILD [headers]}
want=${2:-image}
skip() {
    echo "$*"
    exit 77
}
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    skip "the guest's kernel is a Debian package, and there is no apt-get"
[ "$(dpkg --print-architecture)" = amd64 ] || skip "the guest's kernel is for amd64"
folder=$build/guest
[ "$want" != newer ] || folder+=/newer
mkdir -p "$folder"
cd "$folder"
exec 9>.lock
flock 9

# A kernel that was fetched before stays in use, whatever newer one there is by now.
for folder in kernel-*; do
    [ -d "$folder" ] && version=${folder#kernel-}
done
if [ -z "${version:-}" ] && [ "$want" = newer ]; then
    version=$(apt-cache pkgnames linux-image-6. | sed -n 's/^linux-image-\(6\..*-cloud-amd64\)-unsigned$/\1/p' |
        grep -v '^6\.[0-3]\.' | sort -V | tail -n 1)
    [ -n "$version" ] || skip "apt knows no kernel for clouds of Linux 6.4 or newer (apt-get update)"
fi
if [ -z "${version:-}" ]; then
    version=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        sed -n 's/.*Depends: linux-image-\(.*-cloud-amd64\)$/\1/p' | head -n 1)
    [ -n "$version" ] || skip "apt knows no linux-image-cloud-amd64 (apt-get update)"
fi

fetch() { # FOLDER PACKAGE...
    local folder=$1 new
    shift
    [ -d "$folder" ] && return
    new=$(mktemp -d new-XXXXXX)
    # Lists that are too old name packages that are gone.
    (cd "$new" && { apt-get download -qq "$@" 2>log ||
        { apt-get update -qq && apt-get download -qq "$@"; } 2>log; }) || {
        cat "$new/log" >&2
        rm -rf "$new"
        skip "apt cannot download $1 (no network, or apt-get update is due)"
    }
    for package in "$new"/*.deb; do
        dpkg-deb -x "$package" "$new/root"
        rm "$package"
    done
    rm "$new/log"
    mv "$new/root" "$folder"
    rmdir "$new"
}
if [ "$want" = newer ]; then
    command -v xz >/dev/null || skip "there is no xz for the kernel's modules; install it: apt-get install xz-utils"
    fetch "kernel-$version" "linux-image-$version-unsigned"
    find "kernel-$version" -name '*.ko.xz' -exec xz -d {} +
else
    fetch "kernel-$version" "linux-image-$version"
fi
if [ "$want" = headers ]; then
    common=${version%-cloud-amd64}
    series=$(sed -E 's/^([0-9]+\.[0-9]+).*/\1/' <<<"$version")
    fetch "headers-$version" "linux-headers-$version" "linux-headers-$common-common" \
        "linux-kbuild-$series"
fi
echo "$PWD/kernel-$version"
