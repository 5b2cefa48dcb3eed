/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define PATHS_MAX ((size_t)1 << 20)

/* `out` is a clean absolute path, "" for the root. */
static void append_part(struct buf *out, const char *part, size_t length)
{
    if (length == 0 || (length == 1 && part[0] == '.'))
        return;
    if (length == 2 && part[0] == '.' && part[1] == '.') {
        const char *slash = strrchr(buf_text(out), '/');
        if (slash != NULL)
            buf_truncate(out, (size_t)(slash - buf_text(out)));
        return;
    }
    buf_putc(out, '/');
    buf_append(out, part, length);
}

static void append_parts(struct buf *out, const char *path)
{
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        append_part(out, path, length);
        path += length + (path[length] == '/');
    }
}

char *stage_path_clean(const char *folder, const char *path)
{
    struct buf out = BUF_INIT(PATHS_MAX);
    if (path[0] != '/')
        append_parts(&out, folder);
    append_parts(&out, path);
    if (out.length == 0)
        buf_putc(&out, '/');
    return buf_take(&out);
}

const char *stage_path_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (length == 1)
        length = 0; /* "/" */
    if (strncmp(path, folder, length) != 0 || (path[length] != '\0' && path[length] != '/'))
        return NULL;
    return path + length;
}

/* Where the part of `path` begins that stays: the path up to there is at or below `root`, whose
 * `*inner` that is, and what follows does not lead out of it. */
static const char *find_rest(const char *root, const char *folder, const char *path, char **inner)
{
    const char *found = NULL, *at = path;
    if (path[0] == '/')
        folder = "/";
    while (true) {
        char *start AUTO_FREE = mem_strndup(path, (size_t)(at - path));
        char *clean AUTO_FREE = stage_path_clean(folder, start);
        const char *below = stage_path_below(clean, root);
        if (below == NULL) {
            found = NULL;
        } else if (found == NULL) {
            found = at;
            mem_replace(inner, below);
        }
        if (*at == '\0')
            return found;
        at += strspn(at, "/");
        at += strcspn(at, "/");
    }
}

static char *move(const struct stage_move *to, const char *folder, const char *path)
{
    char *inner AUTO_FREE = NULL;
    const char *rest = find_rest(to->from, folder, path, &inner);
    bool joins = rest == path && rest[0] != '/' && rest[0] != '\0';
    return mem_printf("%s%s%s%s", to->to, inner, joins ? "/" : "", rest);
}

char *stage_move_path(const struct stage_moves *moves, const char *folder, const char *path)
{
    char *clean AUTO_FREE = stage_path_clean(folder, path);
    const struct stage_move *best = NULL;
    for (size_t i = 0; i < moves->count; i++) {
        const char *below = stage_path_below(clean, moves->items[i].from);
        if (below != NULL && stage_list_entry(moves->items[i].list, below) != NULL &&
            (best == NULL || strlen(moves->items[i].from) > strlen(best->from)))
            best = &moves->items[i];
    }
    return best == NULL ? NULL : move(best, folder, path);
}

static bool is_file_root(const struct stage_moves *moves, const char *folder, const char *word)
{
    char *clean AUTO_FREE = stage_path_clean(folder, word);
    bool found = false;
    for (size_t i = 0; i < moves->count; i++)
        found = found || (moves->items[i].list->files[0].kind != 'd' &&
                          strcmp(moves->items[i].from, clean) == 0);
    return found;
}

char *stage_move_word(const struct stage_moves *moves, const char *folder, const char *word)
{
    if (strchr(word, '/') == NULL && !is_file_root(moves, folder, word))
        return NULL;
    return stage_move_path(moves, folder, word);
}

/* A relative part of a list of paths means another folder for each process: it stays. */
static bool move_list(const struct stage_moves *moves, const char *list, struct buf *out)
{
    bool moved = false;
    while (true) {
        size_t length = strcspn(list, ":");
        char *part AUTO_FREE = mem_strndup(list, length);
        char *to AUTO_FREE = part[0] == '/' ? stage_move_path(moves, "/", part) : NULL;
        buf_puts(out, to != NULL ? to : part);
        moved = moved || to != NULL;
        if (list[length] == '\0')
            return moved;
        buf_putc(out, ':');
        list += length + 1;
    }
}

char *stage_move_variable(const struct stage_moves *moves, const char *pair)
{
    static const char *const names[] = {
        "PATH",       "VIRTUAL_ENV",     "CONDA_PREFIX", "PYTHONPATH", "LD_LIBRARY_PATH",
        "PYTHONHOME", "CONDA_PYTHON_EXE"};
    const char *value = strchr(pair, '=');
    struct buf out AUTO_BUF = BUF_INIT(PATHS_MAX);

    if (value == NULL)
        return NULL;
    size_t length = (size_t)(value - pair);
    bool known = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        known = known || (strlen(names[i]) == length && strncmp(names[i], pair, length) == 0);
    buf_append(&out, pair, length + 1);
    return known && move_list(moves, value + 1, &out) ? buf_take(&out) : NULL;
}

/* From one folder to a path; both are clean. */
static char *relative(const char *from, const char *to)
{
    struct buf out = BUF_INIT(PATHS_MAX);
    size_t same = 0; /* up to here, and to the end of a part of both */
    for (size_t i = 0;; i++) {
        bool ends = (from[i] == '\0' || from[i] == '/') && (to[i] == '\0' || to[i] == '/');
        if (ends)
            same = i;
        if (from[i] != to[i] || from[i] == '\0')
            break;
    }
    for (const char *at = from + same; *at != '\0'; at++) {
        if (*at == '/')
            buf_puts(&out, out.length > 0 ? "/.." : "..");
    }
    if (to[same] != '\0')
        buf_printf(&out, "%s%s", out.length > 0 ? "/" : "", to + same + 1);
    if (out.length == 0)
        buf_putc(&out, '.');
    return buf_take(&out);
}

char *stage_link_target(const char *root, const char *folder, const char *target)
{
    char *clean AUTO_FREE = stage_path_clean(folder, target);
    if (stage_path_below(clean, root) == NULL)
        return mem_strdup(clean);
    return target[0] == '/' ? relative(folder, clean) : mem_strdup(target);
}

int stage_root_parse(const char *text, struct stage_root_words *out, struct error *err)
{
    struct buf path AUTO_BUF = BUF_INIT(PATHS_MAX);
    const char *colon = NULL;
    for (const char *at = text; *at != '\0'; at++) {
        if (at[0] == '\\' && at[1] == ':')
            at++;
        else if (*at == ':')
            colon = at;
    }
    const char *end = colon == NULL ? text + strlen(text) : colon;
    for (const char *at = text; at < end; at++) {
        if (at[0] == '\\' && at[1] == ':')
            at++;
        buf_putc(&path, *at);
    }
    if (path.length == 0 || (colon != NULL && colon[1] == '\0'))
        return error_set(err, "'%s': expected PATH or PATH:DEST", text);
    out->path = buf_take(&path);
    out->dest = colon == NULL ? NULL : mem_strdup(colon + 1);
    return 0;
}
