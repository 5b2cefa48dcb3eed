/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/adapt_agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "features/stage/paths.h"

#define VARIABLE "HVDRUN_STAGED"
#define STAGED_MAX ((size_t)1 << 20)
#define STORE_PART "/hvdrun-stage-"

struct moves {
    struct stage_move *items; /* owned; their texts belong to the places */
    size_t count;
};

void stage_places_add(struct stage_places *places, const Hvdrun__Stage *message)
{
    places->items = mem_resize_array(places->items, places->count + 1, sizeof(*places->items));
    struct stage_place *place = &places->items[places->count++];
    *place = (struct stage_place){.dest = mem_strdup(message->dest)};
    for (size_t i = 0; i < message->n_names; i++)
        strv_add(&place->names, message->names[i]);
}

void stage_places_put(struct stage_places *places, size_t root, char *to_take, bool is_file)
{
    places->items[root].to = to_take;
    places->items[root].is_file = is_file;
}

void stage_places_destroy(struct stage_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        strv_destroy(&places->items[i].names);
        free(places->items[i].dest);
        free(places->items[i].to);
    }
    free(places->items);
    free(places->problem);
    strv_destroy(&places->links);
}

static struct moves moves_of(const struct stage_places *places)
{
    struct moves moves = {.count = 0};
    for (size_t i = 0; i < places->count; i++) {
        const struct stage_place *place = &places->items[i];
        moves.items =
            mem_resize_array(moves.items, moves.count + place->names.count, sizeof(*moves.items));
        for (size_t k = 0; place->to != NULL && k < place->names.count; k++)
            moves.items[moves.count++] =
                (struct stage_move){place->names.items[k], place->to, place->is_file};
    }
    return moves;
}

static void replace(char **text, char *with_take)
{
    if (with_take == NULL)
        return;
    if (*text != protobuf_c_empty_string) /* of a field that the driver did not send */
        free(*text);
    *text = with_take;
}

static void move_variables(const struct moves *moves, char **pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        replace(&pairs[i], stage_move_variable(moves->items, moves->count, pairs[i]));
}

/* A relative path of the command stays if the folder in which it starts has moved along. */
static void move_app(const struct moves *moves, Hvdrun__App *app, const char *before,
                     const char *folder)
{
    bool moved = strcmp(before, folder) != 0;
    for (size_t i = 0; i < app->n_argv; i++) {
        if (moved && app->argv[i][0] != '/')
            continue;
        replace(&app->argv[i], stage_move_word(moves->items, moves->count, before, app->argv[i]));
    }
    move_variables(moves, app->env, app->n_env);
}

static void move_apps(const struct moves *moves, Hvdrun__Prepare *prepare)
{
    char *here AUTO_FREE = prepare->wdir[0] != '\0' ? mem_strdup(prepare->wdir) : getcwd(NULL, 0);
    char *to = here == NULL ? NULL : stage_move_path(moves->items, moves->count, "/", here);
    char *folder AUTO_FREE = mem_strdup(to != NULL ? to : here != NULL ? here : "/");
    for (size_t i = 0; i < prepare->n_apps; i++) {
        Hvdrun__App *app = prepare->apps[i];
        const char *own = app->wdir[0] != '\0' ? app->wdir : here != NULL ? here : "/";
        char *before AUTO_FREE = mem_strdup(own);
        if (app->wdir[0] != '\0')
            replace(&app->wdir, stage_move_path(moves->items, moves->count, "/", app->wdir));
        move_app(moves, app, before, app->wdir[0] != '\0' ? app->wdir : folder);
    }
    replace(&prepare->wdir, to);
}

static void add_variable(const struct stage_places *places, Hvdrun__Prepare *prepare)
{
    struct buf text = BUF_INIT(STAGED_MAX);
    buf_puts(&text, VARIABLE "=");
    for (size_t i = 0; i < places->count; i++)
        buf_printf(&text, "%s%s", i > 0 ? ":" : "",
                   places->items[i].to == NULL ? "" : places->items[i].to);
    prepare->host_env =
        mem_resize_array(prepare->host_env, prepare->n_host_env + 1, sizeof(char *));
    prepare->host_env[prepare->n_host_env++] = buf_take(&text);
}

/* Links */

/* It leads to a copy: this job or an earlier one has made it. */
static bool is_ours(const char *path, const char *to, bool *same)
{
    char text[4096];
    ssize_t length = readlink(path, text, sizeof(text) - 1);
    if (length < 0)
        return false;
    text[length] = '\0';
    *same = strcmp(text, to) == 0;
    return *same || (strstr(text, STORE_PART) != NULL && strstr(text, "/copy/") != NULL);
}

/* -1 and errno. EEXIST: there is something else. */
static int put_link(const char *path, const char *to)
{
    bool same = false;
    if (symlink(to, path) == 0)
        return 0;
    if (errno != EEXIST || !is_ours(path, to, &same)) {
        errno = errno == EINVAL ? EEXIST : errno;
        return -1;
    }
    if (same)
        return 0;
    char *next AUTO_FREE =
        mem_printf("%s.new-%d-%lld", path, (int)getpid(), (long long)clock_wall_ns());
    if (symlink(to, next) < 0)
        return -1;
    if (rename(next, path) == 0)
        return 0;
    int code = errno;
    unlink(next);
    errno = code;
    return -1;
}

static void make_link(struct stage_places *places, const struct stage_place *place,
                      const char *folder)
{
    char *path AUTO_FREE = stage_path_clean(folder, place->dest);
    struct error err = ERROR_INIT;
    if (put_link(path, place->to) == 0) {
        strv_add(&places->links, path);
        return;
    }
    if (errno == EEXIST)
        error_set(&err, "--stage cannot make the link %s: there is something else of that name",
                  path);
    else
        error_errno(&err, errno, "--stage cannot make the link %s", path);
    free(places->problem);
    places->problem = mem_strdup(err.text);
}

void stage_places_adapt(struct stage_places *places, Hvdrun__Prepare *prepare)
{
    struct moves moves = moves_of(places);
    char *folder AUTO_FREE = prepare->wdir[0] != '\0' ? mem_strdup(prepare->wdir) : getcwd(NULL, 0);
    for (size_t i = 0; i < places->count && places->links.count < places->count; i++) {
        if (places->items[i].dest[0] != '\0')
            make_link(places, &places->items[i], folder != NULL ? folder : "/");
    }
    move_apps(&moves, prepare);
    move_variables(&moves, prepare->base_env, prepare->n_base_env);
    move_variables(&moves, prepare->host_env, prepare->n_host_env);
    add_variable(places, prepare);
    free(moves.items);
}

void stage_places_unlink(struct stage_places *places)
{
    for (size_t i = 0; i < places->links.count; i++) {
        bool same = false;
        for (size_t k = 0; !same && k < places->count; k++) {
            if (places->items[k].to != NULL)
                (void)is_ours(places->links.items[i], places->items[k].to, &same);
        }
        if (same)
            unlink(places->links.items[i]);
    }
}
