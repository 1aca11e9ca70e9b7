// SPDX-License-Identifier: MIT
//
// `taillight agent`: the far end of a controller's link, which speaks frames on stdin and stdout.
// It is started by the controller, not by people. It ends with its link: at end of file, or when
// nothing has come for LINK_SILENCE_MS (base/link.h).
#ifndef LOADGEN_AGENT_COMMAND_H
#define LOADGEN_AGENT_COMMAND_H

int agent_command(int argc, char **argv);

#endif
