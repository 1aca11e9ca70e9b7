#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is installed is whole: an experiment runs from it, the man pages' files are there, and removing
# it leaves nothing. The Debian package holds the same, stripped, names the libraries that it needs, and
# its debug symbols are found by build-id. zsh and fish read their completions.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
build() { make --no-print-directory BUILD="$BUILD" "$@" >"$work/make" 2>&1 || fail "make $*: $(cat "$work/make")"; }

# --- make install, make uninstall ----------------------------------------------------------------

build install DESTDIR="$work/root" PREFIX=/opt
root=$work/root/opt
for named in $(grep -ohE 'docs/[a-zA-Z@.-]+\.(md|service|json)' docs/man/*.1 | sort -u); do
    [ -s "$root/share/doc/taillight/${named#docs/}" ] || fail "$named, which a man page names, is not installed"
done
while read -r link; do
    [ -e "$root/share/doc/taillight/$link" ] || fail "README.md names $link, which is not there where it is installed"
done < <(grep -oE '\]\([^):#]+' "$root/share/doc/taillight/README.md" | cut -c3-)
(cd "$work" && "$root/bin/taillight" doctor --json >doctor.json) || [ $? -eq 1 ] || fail "doctor"
(cd "$work" && "$root/bin/taillight" run "$root/share/taillight/experiments/quickstart.yaml" --out run --quiet \
    --set load.duration=1s >said 2>&1) || [ $? -eq 4 ] || fail "a run: $(cat "$work/said")"
jq -e '.joined > 100 and .calls.by_shim > 100' "$work/run/summary.json" >/dev/null || fail "a run without its shim"
touch "$root/share/taillight/mine"
build uninstall DESTDIR="$work/root" PREFIX=/opt
[ "$(find "$root" -type f)" = "$root/share/taillight/mine" ] || fail "left, or too much taken: $(find "$root" -type f)"

# --- make deb --------------------------------------------------------------------------------------

build deb
package=$(ls "$BUILD"/taillight_*.deb)
mkdir "$work/"{package,symbols}
dpkg-deb -x "$package" "$work/package"
dpkg-deb -x "$BUILD"/taillight-dbgsym_*.deb "$work/symbols"
dpkg-deb -I "$package" md5sums >"$work/sums"
(cd "$work/package" && md5sum --quiet -c "$work/sums") || fail "md5sums"
IFS=, read -ra depends <<<"$(dpkg-deb -f "$package" Depends)"
[ ${#depends[@]} -gt 10 ] || fail "it depends on too little: ${depends[*]}"
for each in "${depends[@]}"; do
    dpkg-query -W "$(sed 's/^ *//; s/ .*//' <<<"$each")" >/dev/null || fail "$each: no such package"
done
for binary in bin/taillight lib/taillight/libtaillight-shim.so lib/taillight/labserver; do
    file=$work/package/usr/$binary
    [ "$(stat -c %s "$file")" -lt "$(stat -c %s "$BUILD/${binary##*/}")" ] || fail "$binary is not stripped"
    id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
    readelf -SW "$work/symbols/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" 2>/dev/null | grep -q debug_info || fail "$binary: no symbols"
done
"$work/package/usr/bin/taillight" version >/dev/null || fail "the packaged program does not start"
grep -q '^ExecStart=/usr/bin/taillight' "$work/package/lib/systemd/system/taillight-watch@.service" || fail "the unit"

# --- the other shells' completions -------------------------------------------------------------------

mkdir "$work/bin"
ln -s "$PWD/$BUILD/taillight" "$work/bin/taillight"
PATH=$work/bin:$PATH
if command -v fish >/dev/null; then
    said=$(HOME=$work fish -c 'source docs/completions/fish/taillight.fish; complete -C "taillight lo"; complete -C "taillight load --js"')
    [ "$(cut -f 1 <<<"$said")" = "$(printf 'load\n--json')" ] || fail "fish: $said"
fi
if command -v zsh >/dev/null; then
    # Its own functions stand in for zsh's: what would be offered, and of what.
    said=$(zsh -fc '_describe() { print -l $@[-1] ${(P)@[-1]} }; _files() { print files }
        complete() { words=("$@"); CURRENT=$#words; source docs/completions/zsh/_taillight }
        complete taillight ""; complete taillight load --; complete taillight run x')
    grep -q '^load:load a server' <<<"$said" && grep -q '^--json:print one JSON' <<<"$said" &&
        grep -q '^files$' <<<"$said" || fail "zsh: $said"
fi
echo "installed and removed; ${package##*/} with ${#depends[@]} libraries"
