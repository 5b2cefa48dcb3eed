/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "features/hang/place_frame.h"
#include "stacks/tree.h"

#define WHERE_MAX 1024
#define LEVELS_MAX 8 /* how often the ranks that go on may part again */

struct path {
    enum stack_role role;
    struct stack_frame *frames; /* those that tell something, the outermost first */
    size_t count;
    bool waits;         /* for others of its own process */
    bool standard;      /* all of it is: it tells nothing */
    bool calls;         /* the last frame is a system call */
    const char *system; /* "nfs4", on which the thread waits; NULL */
    uint64_t hash;      /* 0: it is unknown where it is */
};

struct rank {
    int rank;
    struct path *paths;
    size_t count, main; /* main: the first of STACK_MAIN; `count`: none */
    bool goes_on, odd;
    size_t parting; /* of an odd one: the frame with which it leaves the others */
    struct program_place place;
    char *where, *shared;
    enum torch_call call; /* of the main thread */
    bool may_call;        /* another thread or process of it */
};

struct places {
    struct rank *ranks; /* in the order in which they came */
    size_t count;
    uint64_t *common; /* ascending: the paths at which more than a half of all ranks are */
    size_t common_count;
};

struct places *places_create(void)
{
    return mem_alloc(sizeof(struct places));
}

void places_destroy(struct places *places)
{
    for (size_t i = 0; places != NULL && i < places->count; i++) {
        struct rank *rank = &places->ranks[i];
        for (size_t j = 0; j < rank->count; j++)
            free(rank->paths[j].frames);
        free(rank->paths);
        free(rank->where);
        free(rank->shared);
    }
    if (places != NULL) {
        free(places->ranks);
        free(places->common);
    }
    free(places);
}

bool places_are_few(size_t count, size_t all)
{
    return all > 2 && count > 0 && (count == 1 || count <= all / 4);
}

static struct rank *find_rank(const struct places *places, int rank)
{
    for (size_t i = places->count; i > 0; i--) { /* the stacks of a rank follow each other */
        if (places->ranks[i - 1].rank == rank)
            return &places->ranks[i - 1];
    }
    return NULL;
}

static struct rank *make_rank(struct places *places, int number)
{
    struct rank *rank = find_rank(places, number);
    if (rank != NULL)
        return rank;
    rank = &MEM_ADD(places->ranks, places->count);
    *rank = (struct rank){.rank = number};
    return rank;
}

/* What a process without frames calls is its place, unless it runs. */
static void take_frames(const struct stack *stack, struct path *out)
{
    size_t telling = place_frames_telling(stack, &out->waits);
    bool runs = strcmp(stack->doing, STACK_RUNNING) == 0, alone = stack->bare && telling == 1;
    out->frames = mem_array(telling + 2, sizeof(*out->frames));
    out->calls = alone && !runs && stack->doing[0] != '\0';
    for (size_t i = 0; i < telling && (!alone || out->calls); i++)
        out->frames[out->count++] = stack->frames[i];
    if (out->calls)
        out->frames[out->count++] = (struct stack_frame){stack->doing, "", 0, false};
    out->hash = hash_add(HASH_START, &out->role, sizeof(out->role)) | 1;
    for (size_t i = 0; i < out->count; i++)
        out->hash = place_frame_hash(&out->frames[i], out->hash) | 1;
    out->hash = out->count > 0 ? out->hash : 0;
    out->standard = telling > 0 && place_frame_is_standard(&stack->frames[telling - 1]);
}

void places_add(struct places *places, const struct stack *stack)
{
    struct rank *rank = make_rank(places, stack->rank);
    const char *system = strstr(stack->doing, STACK_ON);
    if (stack->held && rank->place.held == NULL) {
        rank->place.held = stack->doing;
        rank->place.held_below = stack->role == STACK_CHILD;
    }
    if (stack->role != STACK_MAIN)
        rank->may_call = rank->may_call || torch_call_is_possible(stack);
    else
        rank->call = torch_call_of(stack);
    struct path *path = &MEM_ADD(rank->paths, rank->count);
    *path = (struct path){.role = stack->role,
                          .system = system != NULL ? system + strlen(STACK_ON) : NULL};
    take_frames(stack, path);
}

/* NULL: unknown. */
static const struct path *main_path(const struct rank *rank)
{
    const struct path *path = rank->main < rank->count ? &rank->paths[rank->main] : NULL;
    return path != NULL && path->count > 0 ? path : NULL;
}

static uint64_t frame_at(const struct rank *rank, size_t depth)
{
    const struct path *path = main_path(rank);
    return depth < path->count ? place_frame_hash(&path->frames[depth], HASH_START) | 1 : 0;
}

/* ---- texts */

/* The innermost frame of the first `count` that is not standard; the innermost one if all are. */
static const struct stack_frame *telling_frame(const struct path *path, size_t count)
{
    for (size_t i = count; i > 0 && !path->calls; i--) {
        if (!place_frame_is_standard(&path->frames[i - 1]))
            return &path->frames[i - 1];
    }
    return &path->frames[count - 1];
}

/* NULL: it is in none. */
static const char *mpi_call(const struct path *path, size_t count)
{
    return path->calls ? NULL : place_frame_mpi_call(telling_frame(path, count));
}

/* "MPI_Recv, called by a.c:12 step" */
static void put_mpi_call(const struct path *path, size_t count, struct buf *out)
{
    size_t at = (size_t)(telling_frame(path, count) - path->frames);
    buf_puts(out, mpi_call(path, count));
    if (at == 0 || !path->frames[at - 1].native)
        return;
    buf_puts(out, ", called by ");
    stack_frame_text(&path->frames[at - 1], out);
}

static char *text_of(const struct path *path, size_t count)
{
    struct buf text = BUF_INIT(WHERE_MAX);
    if (mpi_call(path, count) != NULL)
        put_mpi_call(path, count, &text);
    else
        stack_frame_text(telling_frame(path, count), &text);
    if (path->system != NULL && count == path->count)
        buf_printf(&text, " (%s)", path->system);
    return buf_take(&text);
}

struct at {
    uint64_t hash;
    int rank;
};

static int by_place(const void *a, const void *b)
{
    const struct at *first = a, *second = b;
    if (first->hash != second->hash)
        return first->hash < second->hash ? -1 : 1;
    return (first->rank > second->rank) - (first->rank < second->rank);
}

/* Where more than a half of all ranks have a thread or a process. */
static void find_common(struct places *places)
{
    size_t all = 0, count = 0, ranks = 0;
    for (size_t i = 0; i < places->count; i++)
        all += places->ranks[i].count;
    struct at *list AUTO_FREE = mem_array(all + 1, sizeof(*list));
    places->common = mem_array(all + 1, sizeof(*places->common));
    for (size_t i = 0; i < places->count; i++) {
        const struct rank *rank = &places->ranks[i];
        for (size_t j = 0; j < rank->count; j++)
            list[count++] = (struct at){rank->paths[j].hash, rank->rank};
    }
    if (count > 1)
        qsort(list, count, sizeof(*list), by_place);
    for (size_t i = 0; i < count; i++) {
        bool here = i > 0 && list[i - 1].hash == list[i].hash;
        ranks = here ? ranks + (list[i - 1].rank != list[i].rank ? 1 : 0) : 1;
        bool last = i + 1 == count || list[i + 1].hash != list[i].hash;
        if (last && 2 * ranks > places->count)
            places->common[places->common_count++] = list[i].hash;
    }
}

static int by_hash(const void *a, const void *b)
{
    const uint64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static bool is_common(const struct places *places, uint64_t hash)
{
    return places->common_count > 0 &&
           bsearch(&hash, places->common, places->common_count, sizeof(hash), by_hash) != NULL;
}

/* A thread or process of the rank, in this order, that is where those of most are not. */
static const struct path *own_path(const struct places *places, const struct rank *rank)
{
    static const enum stack_role roles[] = {STACK_OTHER, STACK_CHILD};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        for (size_t j = 0; j < rank->count; j++) {
            const struct path *path = &rank->paths[j];
            if (path->role == roles[i] && path->count > 0 && !path->standard &&
                !is_common(places, path->hash))
                return path;
        }
    }
    return NULL;
}

/* "in train.py:9 main, and a child process of it is in data.py:4 read" */
static void add_own(struct rank *rank, const struct path *own)
{
    char *text AUTO_FREE = text_of(own, own->count), *before = rank->where;
    const char *noun = own->role == STACK_OTHER ? "another thread" : "a child process";
    const char *name = own->frames[0].function;
    if (own->calls)
        rank->where =
            mem_printf("%s, and %s of it (%s) %s", before, noun,
                       text_begins(name, "process ") ? name + strlen("process ") : name, text);
    else
        rank->where = mem_printf("%s, and %s of it is in %s", before, noun, text);
    free(before);
}

/* ---- where they part */

struct group {
    uint64_t hash;
    size_t count;
};

/* Among those that go on: how far all are at one place from `depth` on. */
static size_t common_depth(const struct places *places, const struct rank *first, size_t depth)
{
    for (;; depth++) {
        uint64_t hash = frame_at(first, depth);
        bool same = hash != 0;
        for (size_t i = 0; i < places->count && same; i++)
            same = !places->ranks[i].goes_on || frame_at(&places->ranks[i], depth) == hash;
        if (!same)
            return depth;
    }
}

/* The largest group of those that go on, by their frames at this depth. */
static struct group largest_group(const struct places *places, size_t depth)
{
    uint64_t *hashes AUTO_FREE = mem_array(places->count + 1, sizeof(*hashes));
    struct group found = {0, 0}, current = {0, 0};
    size_t count = 0;
    for (size_t i = 0; i < places->count; i++) {
        if (places->ranks[i].goes_on)
            hashes[count++] = frame_at(&places->ranks[i], depth);
    }
    if (count > 1)
        qsort(hashes, count, sizeof(*hashes), by_hash);
    for (size_t i = 0; i < count; i++) {
        current = i > 0 && hashes[i] == current.hash ? current : (struct group){hashes[i], 0};
        current.count++;
        found = current.count > found.count ? current : found;
    }
    return found;
}

static struct rank *first_that_goes_on(const struct places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        if (places->ranks[i].goes_on)
            return &places->ranks[i];
    }
    return NULL;
}

/* All that part from the group there do so in code of the program. */
static bool parts_in_own_code(const struct places *places, size_t depth)
{
    for (size_t i = 0; i < places->count; i++) {
        const struct path *path = main_path(&places->ranks[i]);
        if (places->ranks[i].goes_on &&
            (depth >= path->count || !place_frame_is_own(&path->frames[depth])))
            return false;
    }
    return true;
}

static void leave(struct places *places, size_t depth, uint64_t hash)
{
    for (size_t i = 0; i < places->count; i++) {
        struct rank *rank = &places->ranks[i];
        uint64_t own = rank->goes_on ? frame_at(rank, depth) : hash;
        if (own == hash)
            continue;
        rank->goes_on = false;
        rank->odd = true;
        rank->parting = depth;
        rank->place.key = hash_add(own, &depth, sizeof(depth)) | 1;
    }
}

/* How deep those are together that go on. */
static size_t part(struct places *places, size_t known)
{
    size_t going = known, depth = common_depth(places, first_that_goes_on(places), 0);
    for (int level = 0; level < LEVELS_MAX; level++) {
        struct group group = largest_group(places, depth);
        if (group.count == going || 2 * group.count <= places->count ||
            !places_are_few(known - group.count, known) ||
            (level > 0 && !parts_in_own_code(places, depth)))
            break;
        leave(places, depth, group.hash);
        going = group.count;
        if (group.hash == 0)
            break;
        depth = common_depth(places, first_that_goes_on(places), depth + 1);
    }
    return depth;
}

/* All main threads are at one place, where they wait for others of their own. */
static void part_below(struct places *places, size_t known)
{
    const struct path **own AUTO_FREE = mem_array(places->count + 1, sizeof(*own));
    size_t count = 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct path *path = main_path(&places->ranks[i]);
        own[i] = path != NULL && path->waits ? own_path(places, &places->ranks[i]) : NULL;
        count += own[i] != NULL ? 1 : 0;
    }
    for (size_t i = 0; i < places->count && places_are_few(count, known); i++) {
        struct rank *rank = &places->ranks[i];
        free(rank->shared);
        rank->shared = NULL;
        if (own[i] == NULL)
            continue;
        rank->place.key = own[i]->hash;
        add_own(rank, own[i]);
    }
}

/* "train.py:9 step > wait.py:4 wait": with the frame at which the ranks part. */
static char *with_parting(const struct rank *rank, size_t depth, const char *where)
{
    const struct path *path = main_path(rank);
    struct buf text AUTO_BUF = BUF_INIT(WHERE_MAX);
    if (depth < path->count)
        stack_frame_text(&path->frames[depth], &text);
    if (depth >= path->count || strcmp(buf_text(&text), where) == 0)
        return mem_strdup(where);
    return mem_printf("%s > %s", buf_text(&text), where);
}

/* The innermost places of both sides can be the same: then what leads there tells them apart. */
static void tell_apart(struct places *places, const struct rank *others, char **shared)
{
    size_t depth = 0;
    bool same = false;
    for (size_t i = 0; i < places->count; i++) {
        struct rank *rank = &places->ranks[i];
        if (!rank->odd || strcmp(rank->where, *shared) != 0)
            continue;
        same = true;
        depth = rank->parting;
        char *before AUTO_FREE = rank->where;
        rank->where = with_parting(rank, depth, before);
    }
    if (same) {
        char *before AUTO_FREE = *shared;
        *shared = with_parting(others, depth, before);
    }
}

static void set_texts(struct places *places, size_t depth)
{
    const struct rank *others = first_that_goes_on(places);
    char *shared AUTO_FREE = text_of(main_path(others), depth > 0 ? depth : 1);
    for (size_t i = 0; i < places->count; i++) {
        struct rank *rank = &places->ranks[i];
        const struct path *path = main_path(rank);
        if (path != NULL)
            rank->where = text_of(path, path->count);
    }
    tell_apart(places, others, &shared);
    for (size_t i = 0; i < places->count; i++) {
        struct rank *rank = &places->ranks[i];
        const struct path *path = main_path(rank);
        if (rank->goes_on) {
            rank->place.key = 1;
            rank->shared = depth > 0 ? mem_strdup(shared) : NULL;
        }
        const struct path *own = rank->odd && path->waits ? own_path(places, rank) : NULL;
        if (own != NULL)
            add_own(rank, own);
    }
}

/* No group is large enough: each rank has a place of its own, or shares it by chance. */
static void set_unlike(struct places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        const struct path *path = main_path(&places->ranks[i]);
        if (path != NULL)
            places->ranks[i].place.key = path->hash;
    }
}

void places_find(struct places *places)
{
    size_t known = 0, odd = 0;
    for (size_t i = 0; i < places->count; i++) {
        struct rank *rank = &places->ranks[i];
        while (rank->main < rank->count && rank->paths[rank->main].role != STACK_MAIN)
            rank->main++;
        rank->goes_on = main_path(rank) != NULL;
        known += rank->goes_on ? 1 : 0;
    }
    if (known == 0)
        return;
    find_common(places);
    size_t depth = part(places, known);
    for (size_t i = 0; i < places->count; i++)
        odd += places->ranks[i].odd ? 1 : 0;
    set_texts(places, depth);
    struct group rest = largest_group(places, depth);
    if (odd == 0 && rest.count < known)
        set_unlike(places);
    else if (odd == 0)
        part_below(places, known);
    for (size_t i = 0; i < places->count; i++) {
        struct rank *rank = &places->ranks[i];
        const struct path *path = main_path(rank);
        rank->place.where = rank->where;
        rank->place.shared = rank->shared;
        rank->place.calls = path != NULL && path->calls;
        rank->place.mpi = path != NULL && mpi_call(path, path->count) != NULL;
        rank->place.call =
            rank->may_call && rank->call == TORCH_CALL_NONE ? TORCH_CALL_UNKNOWN : rank->call;
    }
}

size_t places_count(const struct places *places)
{
    return places->count;
}

int places_rank(const struct places *places, size_t number)
{
    return places->ranks[number].rank;
}

const struct program_place *places_of(const struct places *places, int rank)
{
    const struct rank *found = find_rank(places, rank);
    return found != NULL ? &found->place : NULL;
}
