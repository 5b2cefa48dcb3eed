/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen module, hvdrun-screen.so: a live text on the terminal, for `hvdrun top`. It is the
 * only user of ncurses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SCREEN_MODULE_VERSION 1
#define SCREEN_MODULE_SYMBOL "hvdrun_screen"

struct screen;

struct screen_module {
    int version;
    /* NULL: ncurses cannot use this terminal ($TERM). */
    struct screen *(*open)(void);
    /* Shows the lines of `text` for `ms`. Lines that begin with `mark` are shown in bold. The keys
     * move through what does not fit. true: the user leaves, with q or Ctrl-C. */
    bool (*show)(struct screen *screen, const char *text, char mark, int64_t ms);
    void (*close)(struct screen *screen); /* the terminal is as before; accepts NULL */
};
