/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

void strv_destroy(struct strv *v)
{
    for (size_t i = 0; i < v->count; i++)
        free(v->items[i]);
    free(v->items);
    *v = (struct strv)STRV_INIT;
}

void strv_add_take(struct strv *v, char *text)
{
    if (v->count + 2 > v->room) {
        v->room = v->room > 0 ? v->room * 2 : 8;
        v->items = mem_resize_array(v->items, v->room, sizeof(*v->items));
    }
    v->items[v->count++] = text;
    v->items[v->count] = NULL;
}

void strv_add(struct strv *v, const char *text)
{
    strv_add_take(v, mem_strdup(text));
}

void strv_add_n(struct strv *v, const char *text, size_t length)
{
    strv_add_take(v, mem_strndup(text, length));
}

void strv_split(struct strv *v, const char *text, const char *between)
{
    for (text += strspn(text, between); *text != '\0'; text += strspn(text, between)) {
        size_t length = strcspn(text, between);
        strv_add_n(v, text, length);
        text += length;
    }
}

bool strv_has(const struct strv *v, const char *text)
{
    size_t i = 0;
    while (i < v->count && strcmp(v->items[i], text) != 0)
        i++;
    return i < v->count;
}

char *strv_join(char *const *texts, size_t count, const char *between)
{
    struct buf text = BUF_INIT(SIZE_MAX / 2);
    for (size_t i = 0; i < count; i++) {
        buf_puts(&text, i > 0 ? between : "");
        buf_puts(&text, texts[i]);
    }
    return buf_take(&text);
}

void strv_printf(struct strv *v, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    strv_add_take(v, length < 0 ? mem_strdup("") : text);
}

void strv_copy(struct strv *to, char *const *from)
{
    for (; from != NULL && *from != NULL; from++)
        strv_add(to, *from);
}

char *const *strv_items(const struct strv *v)
{
    static char *const none[] = {NULL};
    return v->count > 0 ? v->items : none;
}

static size_t env_find(const struct strv *v, size_t from, const char *name, size_t length)
{
    size_t i = from;
    while (i < v->count && (strncmp(v->items[i], name, length) != 0 || v->items[i][length] != '='))
        i++;
    return i;
}

/* An inherited environment may have a name twice, and programs differ in which one they use. */
static void env_remove(struct strv *v, size_t from, const char *name, size_t length)
{
    for (size_t i = env_find(v, from, name, length); i < v->count;
         i = env_find(v, i, name, length)) {
        free(v->items[i]);
        memmove(v->items + i, v->items + i + 1, (v->count - i) * sizeof(*v->items));
        v->count--;
    }
}

const char *env_value(char *const *env, const char *name)
{
    size_t length = strlen(name);
    while (*env != NULL && (strncmp(*env, name, length) != 0 || (*env)[length] != '='))
        env++;
    return *env == NULL ? NULL : *env + length + 1;
}

const char *strv_env_get(const struct strv *v, const char *name)
{
    size_t length = strlen(name), i = env_find(v, 0, name, length); /* it may lack the NULL */
    return i < v->count ? v->items[i] + length + 1 : NULL;
}

void strv_env_put(struct strv *v, const char *pair)
{
    size_t length = strcspn(pair, "=");
    size_t i = env_find(v, 0, pair, length);
    if (i == v->count) {
        strv_add(v, pair);
        return;
    }
    char *copy = mem_strdup(pair);
    free(v->items[i]);
    v->items[i] = copy;
    env_remove(v, i + 1, pair, length);
}

void strv_env_set(struct strv *v, const char *name, const char *value)
{
    char *pair AUTO_FREE = mem_printf("%s=%s", name, value);
    strv_env_put(v, pair);
}

void strv_env_unset(struct strv *v, const char *name)
{
    env_remove(v, 0, name, strlen(name));
}
