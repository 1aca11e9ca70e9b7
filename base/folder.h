// SPDX-License-Identifier: MIT
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

// Removes a folder and the files in it, not what is in folders of its own; not what a link of that
// name leads to. May be called in a signal handler.
void folder_remove(const char *path);

#endif
