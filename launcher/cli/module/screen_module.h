/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen module, hvdrun-screen.so: a live text on the terminal, for `hvdrun top`. It is the
 * only user of ncurses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SCREEN_MODULE_VERSION 2
/* for io/module_open.h */
#define SCREEN_MODULE_KIND                                          \
    (&(const struct module_kind){                                   \
        "hvdrun-screen.so", "hvdrun_screen", SCREEN_MODULE_VERSION, \
        "is libncursesw6 installed? 'hvdrun top --once' works without it"})

struct screen;

/* A table: its first line stays below the title while the rest scrolls. */
struct screen_view {
    const char *name; /* "hosts": of the key that leads here */
    const char *table;
};

enum screen_key { SCREEN_NONE, SCREEN_LEAVES, SCREEN_SORT };

struct screen_module {
    int version;
    /* NULL: ncurses cannot use this terminal ($TERM). */
    struct screen *(*open)(void);
    /* Shows the title and one of the two views for `ms`. Lines that begin with `mark` are shown in
     * bold, and the last line has the keys and the name of the order. The keys move through what
     * does not fit, and change the view. Returns when the user leaves (q, Ctrl-C) or wants another
     * order, or the time is over. */
    enum screen_key (*show)(struct screen *screen, const char *title,
                            const struct screen_view views[2], const char *order, char mark,
                            int64_t ms);
    void (*close)(struct screen *screen); /* the terminal is as before; accepts NULL */
};
