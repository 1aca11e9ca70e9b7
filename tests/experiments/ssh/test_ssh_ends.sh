#!/usr/bin/env bash
# However a run over ssh ends, it says why and leaves nothing on the other hosts: here the run itself, whose loads
# are elsewhere, too, killed with SIGKILL or interrupted; with its load here, and all other ways, ten times each, in
# test_long_ssh_ends.sh.
# Runs beside others: words and leftovers are looked at, no times.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts server loader
. "$(dirname "$0")/ssh_ends_lib.sh"
break_far_load
rest_is_long
break_far_load_interrupted
