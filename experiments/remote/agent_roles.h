// SPDX-License-Identifier: MIT
//
// `taillight agent`: what this program is at the far end of a link. Without an option, a load agent
// (loadgen/agents/agent_command.h).
#ifndef EXPERIMENTS_REMOTE_AGENT_ROLES_H
#define EXPERIMENTS_REMOTE_AGENT_ROLES_H

int agent_roles_command(int argc, char **argv);

#endif
