# SPDX-License-Identifier: MIT
# fish: commands and options of taillight with what --help says of them; values are files.
function __taillight_commands
    taillight --help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)' '$1\t$2'
end
function __taillight_options
    set -l words (commandline -opc)
    COLUMNS=1000 taillight $words[2] --help 2>/dev/null | string replace -rf '^  (?:-., |    )(--[a-z0-9-]+)(?: [^ ]+)? +(.*)' '$1\t$2'
end
complete -c taillight -n __fish_use_subcommand -f -a '(__taillight_commands)'
complete -c taillight -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -f -a '(__taillight_options)'
