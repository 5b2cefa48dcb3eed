/* SPDX-License-Identifier: Apache-2.0 */
/* An app is one program of the job with its arguments: `a : b` on the command line is two apps. */
#pragma once

#include <stddef.h>

#include "base/strv.h"

struct app {
    struct strv argv;
    struct strv env; /* this app's own -x NAME=value, on top of the job's */
    char *wdir;      /* NULL: the job's */
    int np;          /* 0: not given */
};

struct app_list {
    struct app *items;
    size_t count;
};

struct app *app_list_add(struct app_list *list); /* borrowed until the next add */
void app_list_destroy(struct app_list *list);
