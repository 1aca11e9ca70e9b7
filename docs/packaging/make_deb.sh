#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# make_deb.sh BUILD VERSION (`make deb`): BUILD/taillight_VERSION_ARCH.deb of what `make install` puts
# under /usr, stripped, and taillight-dbgsym beside it, where debuggers look by build-id.
set -eu
build=$1 version=$2
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program="$work/taillight" symbols="$work/taillight-dbgsym"
make --no-print-directory install BUILD="$build" DESTDIR="$program" PREFIX=/usr
mv "$program/usr/share/zsh/site-functions" "$program/usr/share/zsh/vendor-completions" # Debian's place
mkdir -p "$program/lib/systemd/system"
mv "$program/usr/share/doc/taillight/taillight-watch@.service" "$program/lib/systemd/system"
sed -i 's|/usr/local/bin/|/usr/bin/|' "$program/lib/systemd/system/taillight-watch@.service"
mv "$program/usr/share/doc/taillight/LICENSE" "$program/usr/share/doc/taillight/copyright"
gzip -9n "$program"/usr/share/man/man1/*.1

binaries=("$program/usr/bin/taillight" "$program/usr/lib/taillight/libtaillight-shim.so" "$program/usr/lib/taillight/labserver")
for binary in "${binaries[@]}"; do
    id=$(readelf -n "$binary" | sed -n 's/.*Build ID: //p')
    [ -n "$id" ] || { echo "$binary has no build-id, by which its symbols would be found" >&2; exit 1; }
    kept="$symbols/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
    mkdir -p "${kept%/*}"
    objcopy --only-keep-debug --compress-debug-sections "$binary" "$kept"
    chmod 644 "$kept"
    strip --strip-unneeded "$binary"
done

# The libraries that they are linked to, as dpkg-shlibdeps finds them; it wants a source package, and what $ORIGIN is.
mkdir "$work/debian" "$program/DEBIAN"
printf 'Source: taillight\n\nPackage: taillight\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps --warnings=0 -O "${binaries[@]}" | sed -n 's/^shlibs:Depends=//p')

make_package() { # FOLDER NAME DEPENDS SECTION SUMMARY MORE
    mkdir -p "$1/DEBIAN"
    {
        echo "Package: $2"
        echo "Version: $version"
        echo "Architecture: $architecture"
        echo "Maintainer: the Taillight authors <taillight@localhost>"
        echo "Section: $4"
        echo "Priority: optional"
        echo "Installed-Size: $(du -sk "$1" | cut -f 1)"
        echo "Depends: $3"
        [ "$2" != taillight ] || printf '%s\n' 'Recommends: linux-perf, openssh-client, iproute2' 'Suggests: libpcap0.8' # replays packets
        echo "Description: $5"
        echo " $6"
    } >"$1/DEBIAN/control"
    (cd "$1" && find usr lib -type f -exec md5sum {} + 2>/dev/null | sort -k 2) >"$1/DEBIAN/md5sums"
    dpkg-deb --root-owner-group --build "$1" "$build/$2_${version}_$architecture.deb" >/dev/null
    echo "$build/$2_${version}_$architecture.deb"
}
make_package "$program" taillight "$depends" net "why the slow requests of a server are slow" \
    "An open-loop load generator, and the life of each request nanosecond by nanosecond."
make_package "$symbols" taillight-dbgsym "taillight (= $version)" debug "debug symbols for taillight" \
    "Of the program, the library that it puts into servers, and the server for experiments."
