#!/usr/bin/env bash
# However a run over ssh ends, it says why and leaves nothing on the other host: here the run itself,
# killed with SIGKILL or interrupted; all other ways, ten times each, in test_long_ssh_ends.sh.
# Runs beside others: words and leftovers are looked at, no times.
. "$(dirname "$0")/run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts server loader
. "$(dirname "$0")/ssh_ends_lib.sh"
break_controller
break_far_load
break_far_load_interrupted
