/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable, NULL-ended vector, which owns its strings: argument lists, environments, word lists.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct strv {
    char **items; /* NULL-ended if count > 0; strv_items() never returns NULL */
    size_t count, room;
};

#define STRV_INIT \
    {             \
        0         \
    }
#define AUTO_STRV __attribute__((cleanup(strv_destroy)))

void strv_destroy(struct strv *v); /* leaves an empty vector */
void strv_add(struct strv *v, const char *text);
void strv_add_take(struct strv *v, char *text);
void strv_add_n(struct strv *v, const char *text, size_t length);
void strv_printf(struct strv *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends the words of a text, between which are one or more of the bytes `between`. */
void strv_split(struct strv *v, const char *text, const char *between);
bool strv_has(const struct strv *v, const char *text);
/* The texts with `between` between them; the caller's. */
char *strv_join(char *const *texts, size_t count, const char *between);
void strv_copy(struct strv *to, char *const *from); /* appends; `from` may be NULL */
char *const *strv_items(const struct strv *v);      /* NULL-ended, never NULL; borrowed */

/* The value of `name` in a NULL-ended environment. Borrowed; NULL: it is not set. */
const char *env_value(char *const *env, const char *name);

/* The vector as an environment ("NAME=value"). After set and put a name occurs once, and after
 * unset not at all, even if the environment had it twice before. */
const char *strv_env_get(const struct strv *v, const char *name); /* borrowed; NULL when unset */
void strv_env_set(struct strv *v, const char *name, const char *value);
void strv_env_put(struct strv *v, const char *pair); /* "NAME=value" */
void strv_env_unset(struct strv *v, const char *name);
