# SPDX-License-Identifier: MIT
#
# Packages of Debian's, fetched while apt's own settings stay untouched and nothing is installed. Sourced by a script that has `skip`,
# which ends it with a reason. FOLDER is a new one of the script's own; TAILLIGHT_LAB_MIRROR and TAILLIGHT_LAB_SUITE say
# where else to look.
mirror=${TAILLIGHT_LAB_MIRROR:-http://deb.debian.org/debian}
suite=${TAILLIGHT_LAB_SUITE:-bookworm-backports}
debian_apt() { # FOLDER WORD...
    apt-get -qq -o Dir::Etc::SourceList="$1/sources" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache" -o APT::Sandbox::User=root "${@:2}"
}
debian_lists() { # FOLDER {deb|deb-src} MIRROR SUITE...: what there is
    local new=$1
    mkdir -p "$new"/{lists,cache/archives}/partial
    printf '%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "${@:2}" >"$new/sources"
    debian_apt "$new" update >"$new/log" 2>&1 || skip "apt does not reach $mirror: $(tail -n 1 "$new/log")"
}
debian_unpack() { # FOLDER PACKAGE...: of that suite, into FOLDER/root
    local new=$1 package
    mkdir -p "$new"/{packages,root}
    (cd "$new/packages" && debian_apt "$new" download -t "$suite" "${@:2}") >"$new/log" 2>&1 ||
        skip "$suite does not have $2: $(tail -n 1 "$new/log")"
    for package in "$new"/packages/*.deb; do dpkg-deb -x "$package" "$new/root"; done
}
