#!/usr/bin/env bash
# Time limit: 3000 s
# Every way in which a run over ssh can be broken, ten times each (SSH_ENDS_TIMES): sshd, the
# agents, the server, the controller and one of two far loads killed, the link taken down, the far disk full; and the keeper
# killed with all the rest, after which `doctor --restore` undoes.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_program bpftool bpftool
need_capture
ssh_hosts server loader
. "$(dirname "$0")/ssh_ends_lib.sh"
for time in $(seq "${SSH_ENDS_TIMES:-10}"); do
    for way in ${SSH_ENDS_WAYS:-sshd agent server controller one_of_far_loads link disk keeper}; do
        "break_$way"
    done
    echo "$time of ${SSH_ENDS_TIMES:-10}: all ways"
done
