// SPDX-License-Identifier: MIT
//
// A folder in /tmp for the time being, which only this user can enter. It goes with what it is for,
// and when a signal ends the program; what SIGKILL leaves is removed by the next program of this
// user that makes one, whatever that one is for.
#ifndef BASE_PASSING_FOLDER_H
#define BASE_PASSING_FOLDER_H

#include "base/error.h"

struct passing_folder {
    char path[64]; // "": there is none
    int lock;      // held while it is in use
};

// Makes /tmp/taillight-<what>-<process>-<random>. `what` is a word of small letters. The struct
// stays where it is until passing_folder_end.
int passing_folder_make(struct passing_folder *folder, const char *what, struct error *err);

// Removes it and the files in it. Harmless where there is none.
void passing_folder_end(struct passing_folder *folder);

#endif
