/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/spawn.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

/* ---- The values of a block ------------------------------------------------------------------- */

/* Why a value makes no sense, and NULL if it does. It is not repeated: it may hold anything. */
typedef const char *value_fn(struct spawn_block *block, const char *value);

static struct pmi1_spawn_app *app_of(const struct spawn_block *block)
{
    return &block->request.apps[block->request.app_count - 1];
}

static const char *read_number(const char *value, int64_t min, int64_t max, int64_t *out)
{
    return parse_int(value, min, max, out, NULL) == 0 ? NULL : "a number out of its range";
}

static const char *take_nprocs(struct spawn_block *block, const char *value)
{
    int64_t number = 0;
    const char *why = read_number(value, 0, INT32_MAX, &number);
    app_of(block)->np = (int)number;
    return why;
}

static const char *take_execname(struct spawn_block *block, const char *value)
{
    struct strv *argv = &app_of(block)->argv;
    if (argv->count > 0 || *value == '\0')
        return "a program without a name, or behind its arguments";
    strv_add(argv, value);
    return NULL;
}

static const char *take_totspawns(struct spawn_block *block, const char *value)
{
    int64_t before = block->total;
    const char *why = read_number(value, 1, PMI1_SPAWN_APPS_MAX, &block->total);
    return why == NULL && before != 0 && before != block->total
               ? "a number of programs that changes"
               : why;
}

static const char *take_spawnssofar(struct spawn_block *block, const char *value)
{
    return read_number(value, 1, PMI1_SPAWN_APPS_MAX, &block->number);
}

static const char *take_argcnt(struct spawn_block *block, const char *value)
{
    return read_number(value, 0, INT32_MAX, &block->arguments);
}

static const char *take_argument(struct spawn_block *block, const char *value)
{
    struct strv *argv = &app_of(block)->argv;
    if (argv->count == 0)
        return "an argument before the program";
    strv_add(argv, value);
    return NULL;
}

static const char *take_key(struct spawn_block *block, const char *value)
{
    if (block->key != NULL || *value == '\0')
        return "a key without its value, or an empty one";
    block->key = mem_strdup(value);
    return NULL;
}

static const char *take_preput(struct spawn_block *block, const char *value)
{
    if (block->key == NULL || strlen(block->key) >= PMI1_KEY_MAX || strlen(value) >= PMI1_VALUE_MAX)
        return "a value without its key, or too long";
    strv_add_take(&block->request.preput, block->key);
    strv_add(&block->request.preput, value);
    block->key = NULL;
    return NULL;
}

/* What MPI reserves, and "hosts", as MPICH's launcher says. */
static const char *take_info(struct spawn_block *block, const char *value)
{
    struct pmi1_spawn_app *app = app_of(block);
    char *key AUTO_FREE = block->key;
    block->key = NULL;
    if (key == NULL)
        return "a value without its key";
    bool host =
        strcmp(key, "host") == 0 || strcmp(key, "hosts") == 0 || strcmp(key, "add-host") == 0;
    char **place = host                       ? &app->hosts
                   : strcmp(key, "wdir") == 0 ? &app->wdir
                   : strcmp(key, "path") == 0 ? &block->path
                                              : NULL;
    if (place != NULL) {
        free(*place);
        *place = mem_strdup(value);
    }
    return NULL;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* with a number behind it, if `numbered` */
    bool numbered;
    value_fn *take;
} values[] = {
    {"nprocs", false, take_nprocs},       {"execname", false, take_execname},
    {"totspawns", false, take_totspawns}, {"spawnssofar", false, take_spawnssofar},
    {"argcnt", false, take_argcnt},       {"arg", true, take_argument},
    {"preput_key_", true, take_key},      {"preput_val_", true, take_preput},
    {"info_key_", true, take_key},        {"info_val_", true, take_info},
};

static value_fn *find_value(const char *name)
{
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        size_t length = strlen(values[i].name);
        if (strncmp(name, values[i].name, length) != 0)
            continue;
        const char *rest = name + length;
        bool number = *rest != '\0' && rest[strspn(rest, "0123456789")] == '\0';
        if (values[i].numbered ? number : *rest == '\0')
            return values[i].take;
    }
    return NULL;
}

/* The info key "path" is the folder of the program, as MPICH's launcher understands it. */
static void enter_path(struct spawn_block *block)
{
    char *path AUTO_FREE = block->path;
    char **program = app_of(block)->argv.items;
    block->path = NULL;
    if (path == NULL || *path == '\0' || strchr(*program, '/') != NULL)
        return;
    char *name AUTO_FREE = *program;
    *program = mem_printf("%s/%s", path, name);
}

static int end_block(struct spawn_block *block, struct error *err)
{
    const struct pmi1_spawn_app *app = app_of(block);
    size_t number = block->request.app_count;
    if (block->total == 0) /* a request of one program need not say so */
        block->total = 1;
    if (app->argv.count == 0 || block->key != NULL)
        return error_set(err, "a spawn without a program, or cut off");
    if (block->arguments >= 0 && (size_t)block->arguments != app->argv.count - 1)
        return error_set(err, "a spawn whose arguments are not as many as it says");
    if (block->number != 0 && (size_t)block->number != number)
        return error_set(err, "a spawn whose programs are not in their order");
    enter_path(block);
    block->open = false;
    return number == (size_t)block->total;
}

int spawn_block_open(struct spawn_block *block, struct error *err)
{
    struct pmi1_spawn *request = &block->request;
    if (request->app_count >= PMI1_SPAWN_APPS_MAX)
        return error_set(err, "a spawn of more than %d programs", PMI1_SPAWN_APPS_MAX);
    request->apps =
        mem_one_more(request->apps, request->app_count, &request->room, sizeof(*request->apps));
    request->apps[request->app_count++] = (struct pmi1_spawn_app){.np = 0};
    block->open = true;
    block->number = 0;
    block->arguments = -1;
    return 0;
}

int spawn_block_line(struct spawn_block *block, const char *bytes, size_t length, struct error *err)
{
    if (length > 0 && bytes[length - 1] == '\r')
        length--;
    block->bytes += length + 1;
    if (block->bytes > PMI1_SPAWN_BYTES_MAX)
        return error_set(err, "a spawn of more than %zu MiB", PMI1_SPAWN_BYTES_MAX >> 20);
    if (memchr(bytes, '\0', length) != NULL)
        return error_set(err, "a line with a zero byte");
    char *line AUTO_FREE = mem_strndup(bytes, length);
    if (strcmp(line, "endcmd") == 0)
        return end_block(block, err);
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return error_set(err, "a line of a spawn that is not NAME=VALUE (an argument with a line "
                              "break cannot travel over PMI-1)");
    *equals = '\0';
    if (strcmp(line, "mcmd") == 0)
        return error_set(err, "a spawn inside a spawn");
    value_fn *take = find_value(line);
    const char *why = take != NULL ? take(block, equals + 1) : NULL;
    return why == NULL ? 0 : error_set(err, "a spawn with %s", why);
}

bool spawn_block_is_due(const struct spawn_block *block)
{
    return block->request.app_count > 0 && !block->open;
}

void spawn_block_clear(struct spawn_block *block)
{
    for (size_t i = 0; i < block->request.app_count; i++) {
        struct pmi1_spawn_app *app = &block->request.apps[i];
        strv_destroy(&app->argv);
        free(app->wdir);
        free(app->hosts);
    }
    free(block->request.apps);
    free(block->key);
    free(block->path);
    strv_destroy(&block->request.preput);
    *block = (struct spawn_block){0};
}
