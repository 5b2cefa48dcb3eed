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

/* Of one kind; both are known. */
static bool differ(const struct library_file *one, const struct library_file *other)
{
    return one->machine == other->machine && strcmp(one->id, other->id) != 0;
}

/* "/usr/lib/libmpi.so.40 (build id 0123456789ab)" */
static void put_file(const struct library_file *file, struct buf *out)
{
    buf_printf(out, "%.*s (build id %.*s%s)", PATH_SHOWN, file->path, ID_SHOWN, file->id,
               file->deleted ? ", deleted" : "");
}

struct check { /* of one kind, in one program */
    const struct library_file *files;
    const struct library_rank *ranks;
    size_t count;
    enum library_kind kind;
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
        if (file->kind != check->kind || file->id[0] == '\0' || library_is_stub(file->path))
            continue;
        if (*first < 0)
            *first = rank->files[i];
        else if (*second < 0 && differ(&check->files[*first], file))
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
        files_of(check, rank, &first, &second);
        check->chosen[i] = second < 0 ? first : -1;
        if (second < 0 || check->kind == LIBRARY_CUDART || check->kind == LIBRARY_CUDA)
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
static void put_group(const struct check *check, int file, struct buf *out)
{
    int listed = 0;
    for (size_t i = 0; i < check->count; i++) {
        int own = check->chosen[i];
        if (own >= 0 && check->files[file].machine == check->files[own].machine &&
            !differ(&check->files[file], &check->files[own]))
            check->listed[listed++] = check->ranks[i].rank;
    }
    rank_ranges(check->listed, listed, out);
    buf_puts(out, ": ");
    put_file(&check->files[file], out);
}

static bool tell_if_different(const struct check *check, int one, int other)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    if (!differ(&check->files[one], &check->files[other]))
        return false;
    buf_printf(&text, "ranks of one program have loaded different %s libraries: ",
               library_title(check->kind));
    put_group(check, one, &text);
    buf_puts(&text, "; ");
    put_group(check, other, &text);
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

static int by_app(const void *one, const void *other)
{
    const struct library_rank *a = one, *b = other;
    int apps = (a->app > b->app) - (a->app < b->app);
    return apps != 0 ? apps : (a->rank > b->rank) - (a->rank < b->rank);
}

/* `sorted` are the ranks by app. */
static void check_kind(struct check *check, const struct library_rank *sorted, size_t count)
{
    for (size_t begin = 0; begin < count; begin += check->count) {
        check->ranks = sorted + begin;
        check->count = 1;
        while (begin + check->count < count &&
               sorted[begin + check->count].app == sorted[begin].app)
            check->count++;
        check_processes(check);
        check_ranks(check);
    }
}

void libraries_differ(const struct library_file *files, const struct library_rank *ranks,
                      size_t count, library_each *each, void *context)
{
    struct library_rank *sorted AUTO_FREE = mem_array(count + 1, sizeof(*sorted));
    int *chosen AUTO_FREE = mem_array(count + 1, sizeof(*chosen));
    int *listed AUTO_FREE = mem_array(count + 1, sizeof(*listed));
    struct check check = {
        .files = files, .each = each, .context = context, .chosen = chosen, .listed = listed};
    for (size_t i = 0; i < count; i++)
        sorted[i] = ranks[i];
    if (count > 1)
        qsort(sorted, count, sizeof(*sorted), by_app);
    for (int kind = 0; kind < LIBRARY_KINDS; kind++) {
        check.kind = (enum library_kind)kind;
        check_kind(&check, sorted, count);
    }
}
