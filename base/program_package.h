// SPDX-License-Identifier: MIT
//
// Which package has a program that is started, so that whoever lacks one is told what to install.
#ifndef BASE_PROGRAM_PACKAGE_H
#define BASE_PROGRAM_PACKAGE_H

// Debian's, of a program's name or path; NULL: none that is known.
const char *program_package(const char *program);

#endif
