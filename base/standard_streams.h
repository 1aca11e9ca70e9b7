// SPDX-License-Identifier: MIT
//
// A program's own streams at its begin and its end: what it prints is not lost in silence.
#ifndef BASE_STANDARD_STREAMS_H
#define BASE_STANDARD_STREAMS_H

// Input and output that whoever started the program has closed lead nowhere: no file that it opens
// takes their place.
void standard_streams_open(void);

// Writes what is still to be printed. Returns the exit code: that one, or ERROR_FAILED, and says
// why, where what was printed could not be written. A reader who left wanted no more.
int standard_output_end(int status);

#endif
