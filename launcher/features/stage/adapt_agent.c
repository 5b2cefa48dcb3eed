/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/adapt_agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "features/stage/copy.h"

#define VARIABLE "HVDRUN_STAGED"
#define STAGED_MAX ((size_t)1 << 20)

void stage_places_add(struct stage_places *places, const Hvdrun__Stage *message)
{
    struct stage_place *place = &MEM_ADD(places->items, places->count);
    *place = (struct stage_place){.dest = mem_strdup(message->dest)};
    for (size_t i = 0; i < message->n_names; i++)
        strv_add(&place->names, message->names[i]);
}

void stage_places_destroy(struct stage_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        strv_destroy(&places->items[i].names);
        free(places->items[i].dest);
        free(places->items[i].to);
        free(places->items[i].link);
    }
    free(places->items);
    free(places->problem);
}

static struct stage_moves moves_of(const struct stage_places *places)
{
    struct stage_moves moves = {.count = 0};
    for (size_t i = 0; i < places->count; i++) {
        const struct stage_place *place = &places->items[i];
        moves.items =
            mem_resize_array(moves.items, moves.count + place->names.count, sizeof(*moves.items));
        for (size_t k = 0; place->to != NULL && k < place->names.count; k++)
            moves.items[moves.count++] =
                (struct stage_move){place->names.items[k], place->to, place->list};
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

static void move_variables(const struct stage_moves *moves, char **pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        replace(&pairs[i], stage_move_variable(moves, pairs[i]));
}

/* The folder in which a command starts has moved from `before`, and its relative paths with it. One
 * that leads out of the root becomes absolute, if it names something. NULL: it stays. */
static char *lead_out(const struct stage_moves *moves, const char *before, const char *word)
{
    char *clean AUTO_FREE = stage_path_clean(before, word);
    for (size_t i = 0; i < moves->count; i++) {
        const char *from = moves->items[i].from;
        if (stage_path_below(before, from) != NULL && stage_path_below(clean, from) != NULL)
            return NULL;
    }
    char *to = stage_move_word(moves, before, word);
    if (to != NULL || strchr(word, '/') == NULL)
        return to;
    char *path = mem_printf("%s/%s", before, word);
    if (access(path, F_OK) < 0)
        mem_free_at(&path);
    return path;
}

static void move_app(const struct stage_moves *moves, Hvdrun__App *app, const char *before,
                     const char *folder)
{
    bool moved = strcmp(before, folder) != 0;
    for (size_t i = 0; i < app->n_argv; i++) {
        const char *word = app->argv[i];
        replace(&app->argv[i], moved && word[0] != '/' ? lead_out(moves, before, word)
                                                       : stage_move_word(moves, before, word));
    }
    move_variables(moves, app->env, app->n_env);
}

/* `here`: where the job would start without copies. */
static void move_apps(const struct stage_moves *moves, Hvdrun__Prepare *prepare, const char *here)
{
    char *to = stage_move_path(moves, "/", here);
    char *folder AUTO_FREE = mem_strdup(to != NULL ? to : here);
    for (size_t i = 0; i < prepare->n_apps; i++) {
        Hvdrun__App *app = prepare->apps[i];
        char *before AUTO_FREE = mem_strdup(app->wdir[0] != '\0' ? app->wdir : here);
        if (app->wdir[0] != '\0')
            replace(&app->wdir, stage_move_path(moves, "/", app->wdir));
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
    MEM_ADD(prepare->host_env, prepare->n_host_env) = buf_take(&text);
}

/* Links */

static void make_link(struct stage_places *places, struct stage_place *place,
                      const struct stage_moves *moves, const char *folder)
{
    char *path AUTO_FREE = stage_path_clean(folder, place->dest);
    char *above AUTO_FREE = stage_path_clean(path, "..");
    char *copy AUTO_FREE = stage_move_path(moves, "/", above);
    struct error err = ERROR_INIT;
    if (copy != NULL)
        error_set(&err, "--stage cannot make the link %s in a folder that is staged", path);
    else if (symlink(place->to, path) == 0)
        place->link = mem_strdup(path);
    else if (errno != EEXIST)
        error_errno(&err, errno, "--stage cannot make the link %s", path);
    else if (!stage_link_leads(path, place->to))
        error_set(&err,
                  "--stage cannot make the link %s: there is something else of that name; remove "
                  "it, or choose another DEST",
                  path);
    if (err.text[0] == '\0')
        return;
    mem_replace(&places->problem, err.text);
}

void stage_places_adapt(struct stage_places *places, Hvdrun__Prepare *prepare)
{
    struct stage_moves moves = moves_of(places);
    char *here AUTO_FREE = prepare->wdir[0] != '\0' ? mem_strdup(prepare->wdir) : getcwd(NULL, 0);
    if (here == NULL) /* the folder was removed */
        here = mem_strdup("/");
    for (size_t i = 0; i < places->count; i++) {
        if (places->items[i].dest[0] != '\0' && places->items[i].link == NULL)
            make_link(places, &places->items[i], &moves, here);
    }
    move_apps(&moves, prepare, here);
    move_variables(&moves, prepare->base_env, prepare->n_base_env);
    move_variables(&moves, prepare->host_env, prepare->n_host_env);
    add_variable(places, prepare);
    free(moves.items);
}

void stage_places_unlink(const struct stage_places *places, size_t root)
{
    const struct stage_place *place = &places->items[root];
    if (place->link != NULL && stage_link_leads(place->link, place->to))
        unlink(place->link);
}
