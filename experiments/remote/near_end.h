// SPDX-License-Identifier: MIT
//
// `taillight link FILE -- PROGRAM...` (internal): a process on this machine that stands for one on
// a host behind ssh. Its stdin, stdout and stderr are those of the other one; signals that ask it
// to end are passed on; it ends as the other one does, by exit code or by signal. So code that
// starts, watches and ends processes need not know where they run. The other end is
// experiments/remote/far_end.h.
//
// It fails when nothing comes from the other end for LINK_SILENCE_MS (base/link.h), or ssh ends:
// the last line on stderr says which host, and why.
#ifndef EXPERIMENTS_REMOTE_NEAR_END_H
#define EXPERIMENTS_REMOTE_NEAR_END_H

int link_command(int argc, char **argv);

#endif
