/* SPDX-License-Identifier: Apache-2.0 */
#include "features/libraries/differ.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/plan/rank_list.h"

#define TEXT_MAX ((size_t)4096)
#define PATH_SHOWN 300
#define ID_SHOWN 12
#define FILES_COMPARED 64 /* of a kind, in one program */

static bool is_known(const struct library_file *file)
{
    return file->id[0] != '\0';
}

bool library_differs(const struct library_file *one, const struct library_file *other)
{
    const char *version = library_version(one->path), *others = library_version(other->path);
    if (one->kind != other->kind || one->machine != other->machine || library_is_stub(one->path) ||
        library_is_stub(other->path))
        return false;
    if (is_known(one) && is_known(other))
        return strcmp(one->id, other->id) != 0;
    return version[0] != '\0' && others[0] != '\0' && strcmp(version, others) != 0;
}

/* "/usr/lib/libmpi.so.40 (build id 0123456789ab)" */
static void put_file(const struct library_file *file, struct buf *out)
{
    bool has_id = is_known(file) && strncmp(file->id, LIBRARY_DIGEST, strlen(LIBRARY_DIGEST)) != 0;
    buf_printf(out, "%.*s", PATH_SHOWN, file->path);
    if (has_id)
        buf_printf(out, " (build id %.*s%s)", ID_SHOWN, file->id, file->deleted ? ", deleted" : "");
    else if (file->deleted)
        buf_puts(out, " (deleted)");
}

struct check { /* of one kind, in one program */
    const struct library_file *files;
    const struct library_rank *ranks;
    size_t count;
    enum library_kind kind;
    int app;
    library_each *each;
    void *context;
    int *chosen, *listed; /* by the rank's place: a file of that kind, or -1; a list of ranks */
};

/* The first file of the kind, and another one that differs from it; -1: none. */
static void files_of(const struct check *check, const struct library_rank *rank, int *first,
                     int *second)
{
    *first = *second = -1;
    for (size_t i = 0; i < rank->count; i++) {
        const struct library_file *file = &check->files[rank->files[i]];
        if (file->kind != check->kind || library_is_stub(file->path))
            continue;
        if (*first < 0)
            *first = rank->files[i];
        else if (*second < 0 && library_differs(&check->files[*first], file))
            *second = rank->files[i];
    }
}

static void tell_two(const struct check *check, int first, int second, int count)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    rank_ranges(check->listed, count, &text);
    buf_printf(&text, " %s two %s libraries in one process: ", count == 1 ? "has" : "have",
               library_title(check->kind));
    put_file(&check->files[first], &text);
    buf_puts(&text, " and ");
    put_file(&check->files[second], &text);
    check->each(check->context, check->kind, true, buf_text(&text));
}

/* Also chooses what is compared with other ranks: the file of those that have one. */
static void check_processes(const struct check *check)
{
    int told_first = -1, told_second = -1, listed = 0;
    for (size_t i = 0; i < check->count; i++) {
        const struct library_rank *rank = &check->ranks[i];
        int first = -1, second = -1;
        if (rank->app == check->app)
            files_of(check, rank, &first, &second);
        check->chosen[i] = second < 0 ? first : -1;
        if (second < 0 || check->kind == LIBRARY_CUDART)
            continue;
        if (listed == 0) {
            told_first = first;
            told_second = second;
        }
        if (first == told_first && second == told_second)
            check->listed[listed++] = rank->rank;
    }
    if (listed > 0)
        tell_two(check, told_first, told_second, listed);
}

/* Appends the ranks with the same library as this file. */
static void put_group(const struct check *check, int file, bool all_known, struct buf *out)
{
    int listed = 0;
    for (size_t i = 0; i < check->count; i++) {
        int own = check->chosen[i];
        if (own < 0 || (all_known && !is_known(&check->files[own])))
            continue;
        if (!library_differs(&check->files[file], &check->files[own]) &&
            check->files[file].machine == check->files[own].machine)
            check->listed[listed++] = check->ranks[i].rank;
    }
    rank_ranges(check->listed, listed, out);
    buf_puts(out, ": ");
    put_file(&check->files[file], out);
}

static bool tell_if_different(const struct check *check, int one, int other)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    bool known = is_known(&check->files[one]) && is_known(&check->files[other]);
    if (!library_differs(&check->files[one], &check->files[other]))
        return false;
    buf_printf(&text, "ranks of one program have loaded different %s libraries: ",
               library_title(check->kind));
    put_group(check, one, known, &text);
    buf_puts(&text, "; ");
    put_group(check, other, known, &text);
    check->each(check->context, check->kind, false, buf_text(&text));
    return true;
}

/* The first file that differs from the one of an earlier rank. */
static void check_ranks(const struct check *check)
{
    int seen[FILES_COMPARED];
    size_t count = 0;
    for (size_t i = 0; i < check->count && count < FILES_COMPARED; i++) {
        size_t known = 0;
        while (known < count && seen[known] != check->chosen[i])
            known++;
        if (check->chosen[i] < 0 || known < count)
            continue;
        for (size_t j = 0; j < count; j++) {
            if (tell_if_different(check, seen[j], check->chosen[i]))
                return;
        }
        seen[count++] = check->chosen[i];
    }
}

static bool has_kind(const struct library_file *files, const struct library_rank *ranks,
                     size_t count, int kind)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < ranks[i].count; j++) {
            if ((int)files[ranks[i].files[j]].kind == kind)
                return true;
        }
    }
    return false;
}

static int last_app(const struct library_rank *ranks, size_t count)
{
    int last = -1;
    for (size_t i = 0; i < count; i++)
        last = ranks[i].app > last ? ranks[i].app : last;
    return last;
}

void libraries_differ(const struct library_file *files, const struct library_rank *ranks,
                      size_t count, library_each *each, void *context)
{
    int *chosen AUTO_FREE = mem_array(count + 1, sizeof(*chosen));
    int *listed AUTO_FREE = mem_array(count + 1, sizeof(*listed));
    struct check check = {.files = files,
                          .ranks = ranks,
                          .count = count,
                          .each = each,
                          .context = context,
                          .chosen = chosen,
                          .listed = listed};
    int apps = last_app(ranks, count) + 1;
    for (int kind = 0; kind < LIBRARY_KINDS; kind++) {
        check.kind = (enum library_kind)kind;
        bool any = has_kind(files, ranks, count, kind);
        for (check.app = 0; any && check.app < apps; check.app++) {
            check_processes(&check);
            check_ranks(&check);
        }
    }
}
