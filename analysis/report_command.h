// SPDX-License-Identifier: MIT
//
// `taillight report RUN`: analyses a run folder again and writes what people look at.
#ifndef ANALYSIS_REPORT_COMMAND_H
#define ANALYSIS_REPORT_COMMAND_H

// argv[0] is "report". Returns the program's exit code: 4 when the verdict is N/A.
int report_command(int argc, char **argv);

#endif
