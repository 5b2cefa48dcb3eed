/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a hostfile as they are written; model/hosts/hostfile_ini.h merges them. Pure. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "model/hosts/key.h"

enum section_kind { SECTION_DEFAULTS, SECTION_GROUP, SECTION_HOST, SECTION_KINDS };

/* One line "KEY = VALUE", except `hosts`. */
struct host_setting {
    enum host_key key;       /* HOST_KEY_TOTAL: env */
    char *text;              /* owned; of env "NAME=value" */
    struct host_value value; /* points into `text` */
    size_t section;          /* its index */
    int line;
};

/* A name or a range that a section applies to, not expanded and not checked. */
struct host_named {
    char *text;
    int line;
};

struct host_section {
    enum section_kind kind;
    char *name;               /* of the group; "" else */
    struct host_named *hosts; /* one for [host NAME], none for [defaults] */
    size_t host_count;
    int line;
    size_t first, count; /* its settings */
};

/* All zero: none. */
struct host_sections {
    struct host_section *items;
    size_t count, room;
    struct host_setting *settings;
    size_t setting_count, setting_room;
};

/* `text` is NUL-ended and has no other NUL. Names of hosts are not checked yet. */
int host_sections_read(const char *text, const char *file, struct host_sections *out,
                       struct error *err);
void host_sections_destroy(struct host_sections *sections);
