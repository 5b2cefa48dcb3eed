/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stacks/stack_pool_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/modules.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "features/stacks/stack_door.h"
#include "features/stacks/stack_helper_agent.h"
#include "node/descendants.h"

#define FIRST 2       /* native frames are more work: as many as there are CPUs, from the start */
#define AHEAD 3       /* items that a helper has at a time */
#define TICK_MS 50    /* between two looks after the helpers */
#define STALL_MS 100  /* without any answer: a helper more */
#define LATE_MS 50    /* a helper notices the deadline before it is killed */
#define IDLE_MS 10000 /* a helper that nobody needs ends */

#define WHY_HELD                                                                           \
    "its memory cannot be read, most likely because a file system or swap space does not " \
    "answer"
#define WHY_MANY "it was not read: the kernel holds too many of hvdrun's helper processes"

struct helper {
    struct helper *next;
    struct stack_pool *pool;
    pid_t pid;
    int fd; /* -1: it was left behind, or has closed its end */
    struct loop_fd *readable;
    struct stack_door *door;
    struct buf bytes;
    struct stack_look *look; /* NULL: it is idle */
    size_t items[AHEAD], count;
    int64_t since_ms; /* its last answer, or when it became idle */
    bool stalled;     /* others have all of its items but the one that it has begun */
    bool ended;
    pid_t left_at; /* it was left behind while it read this process; 0: it was not */
};

/* Processes at which a helper waited until it was killed, in a ring; 0: none. */
#define SLOW_MAX 64

struct stack_pool {
    struct loop *loop;
    struct helpers *helpers;
    const char *program;
    struct loop_timer *idle;
    struct helper *first;
    uint32_t looks;
    pid_t slow[SLOW_MAX];
    size_t slow_next;
    struct call_watches *watches; /* NULL: nobody has asked for one */
};

struct stack_look {
    struct stack_pool *pool;
    struct stack_item *items;
    size_t *order;            /* of the items: slow ones last */
    size_t count, next, done; /* before `next` in that order, all were given */
    enum look_depth depth;
    uint32_t number;
    int wanted; /* helpers */
    int64_t deadline_ns, answered_ms;
    struct loop_timer *timer;
    void (*finished)(void *context);
    void *context;
};

static void close_streams(struct helper *helper)
{
    loop_fd_destroy(helper->readable);
    helper->readable = NULL;
    stack_door_destroy(helper->door);
    helper->door = NULL;
    fd_close(&helper->fd);
}

static void release(struct helper *helper)
{
    helper->look = NULL;
    helper->count = 0;
    helper->stalled = false;
    helper->since_ms = clock_mono_ms();
    loop_timer_set(helper->pool->idle, IDLE_MS);
}

/* Those that were killed end soon, unless the kernel holds them. */
static void leave_behind(struct helper *helper, pid_t at)
{
    kill(-helper->pid, SIGKILL);
    close_streams(helper);
    release(helper);
    helper->left_at = at;
}

static void idle_over(void *context)
{
    struct stack_pool *pool = context;
    for (struct helper *helper = pool->first; helper != NULL; helper = helper->next) {
        if (helper->look == NULL)
            close_streams(helper); /* it ends with its stdin */
    }
    /* they stay longer: the next look can be a minute later */
    if (pool->watches != NULL && call_watches_expire(pool->watches) > 0)
        loop_timer_set(pool->idle, IDLE_MS);
}

struct stack_pool *stack_pool_create(struct loop *loop, struct helpers *helpers,
                                     const char *program)
{
    struct stack_pool *pool =
        MEM_NEW((struct stack_pool){.loop = loop, .helpers = helpers, .program = program});
    pool->idle = loop_timer_create(loop, idle_over, pool);
    return pool;
}

static void destroy_helper(struct helper *helper)
{
    close_streams(helper);
    buf_destroy(&helper->bytes);
    free(helper);
}

void stack_pool_destroy(struct stack_pool *pool)
{
    if (pool == NULL)
        return;
    while (pool->first != NULL) {
        struct helper *helper = pool->first;
        pool->first = helper->next;
        helpers_let_go(pool->helpers, helper->pid);
        destroy_helper(helper);
    }
    loop_timer_destroy(pool->idle);
    call_watches_destroy(pool->watches);
    free(pool);
}

static void dispatch(struct stack_look *look);

static void set_done(struct stack_look *look, struct stack_item *item, char *why)
{
    if (item->done)
        free(why);
    else
        item->why = why;
    look->done += item->done ? 0 : 1;
    item->done = true;
}

static void take_back(struct stack_look *look, size_t number)
{
    look->items[number].given = false;
    look->next = 0;
}

static bool is_slow(const struct stack_pool *pool, pid_t pid)
{
    for (size_t i = 0; i < SLOW_MAX; i++) {
        if (pool->slow[i] == pid)
            return true;
    }
    return false;
}

static void note_slow(struct stack_pool *pool, pid_t pid)
{
    if (is_slow(pool, pid))
        return;
    pool->slow[pool->slow_next] = pid;
    pool->slow_next = (pool->slow_next + 1) % SLOW_MAX;
}

static void forget_slow(struct stack_pool *pool, pid_t pid)
{
    for (size_t i = 0; i < SLOW_MAX; i++)
        pool->slow[i] = pool->slow[i] == pid ? 0 : pool->slow[i];
}

static void take_answer(struct helper *helper, Hvdrun__StackAnswer *answer)
{
    struct stack_look *look = helper->look;
    bool wanted = look != NULL && answer->look == look->number && helper->count > 0 &&
                  answer->item == helper->items[0];
    if (!wanted) { /* of a look that is over, or which another helper has answered */
        hvdrun__stack_answer__free_unpacked(answer, NULL);
        return;
    }
    struct stack_item *item = &look->items[answer->item];
    if (item->last && !answer->late)
        forget_slow(look->pool, item->pid);
    memmove(helper->items, helper->items + 1, --helper->count * sizeof(*helper->items));
    helper->since_ms = look->answered_ms = clock_mono_ms();
    helper->stalled = false;
    if (item->done || answer->late)
        hvdrun__stack_answer__free_unpacked(answer, NULL);
    else
        item->answer = answer;
    set_done(look, item, NULL);
    if (helper->count == 0)
        release(helper);
    dispatch(look);
}

/* false: no whole answer is there, or the helper sends what is none. */
static bool next_answer(struct helper *helper)
{
    Hvdrun__StackAnswer *answer;
    int there = stack_helper_answer(&helper->bytes, &answer);
    if (there > 0)
        take_answer(helper, answer);
    if (there < 0) {
        kill(-helper->pid, SIGKILL);
        close_streams(helper);
    }
    return there > 0;
}

/* false: nothing more is there now. */
static bool read_some(struct helper *helper)
{
    char bytes[16384];
    ssize_t got = helper->fd >= 0 ? fd_read(helper->fd, bytes, sizeof(bytes)) : 0;
    if (got <= 0 && !(got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)))
        close_streams(helper); /* its exit comes, too */
    if (got <= 0)
        return false;
    if (buf_append(&helper->bytes, bytes, (size_t)got) < 0)
        leave_behind(helper, 0);
    while (helper->fd >= 0 && next_answer(helper))
        continue;
    return helper->fd >= 0;
}

static void answer_ready(void *context, int what)
{
    (void)what;
    read_some(context);
}

/* What it was reading when it died is tried once more without native frames: they need the files of
 * the process, and the kernel kills who has mapped a file that gets shorter. */
static void bury(struct helper *helper, int wait_status)
{
    struct stack_look *look = helper->look;
    struct stack_item *item =
        look != NULL && helper->count > 0 ? &look->items[helper->items[0]] : NULL;
    for (size_t i = 0; i < helper->count; i++)
        take_back(look, helper->items[i]);
    if (item == NULL || item->done)
        return;
    char *cause AUTO_FREE = stack_helper_death(wait_status);
    if (look->depth > LOOK_PYTHON && !item->plain) {
        item->plain = true;
        item->remark = mem_printf("process %d: %s; most likely, a file of this process changed",
                                  (int)item->pid, cause);
    } else {
        set_done(look, item, mem_printf("its stack cannot be read: %s", cause));
    }
}

static void helper_exited(void *context, int wait_status)
{
    struct helper *helper = context;
    struct stack_pool *pool = helper->pool;
    helper->ended = true;
    while (read_some(helper)) /* what it wrote before */
        continue;
    struct stack_look *look = helper->look;
    struct helper **at = &pool->first;
    while (*at != helper)
        at = &(*at)->next;
    *at = helper->next;
    bury(helper, wait_status);
    destroy_helper(helper);
    if (look != NULL)
        dispatch(look);
}

static struct helper *start(struct stack_pool *pool, struct error *err)
{
    int door = -1;
    struct helper *helper = MEM_NEW(
        (struct helper){.pool = pool, .fd = -1, .bytes = BUF_INIT(STACK_ANSWER_BYTES + 65536)});
    helper->pid = stack_helper_start(pool->helpers, pool->program, helper_exited, helper,
                                     &helper->fd, &door, err);
    if (helper->pid < 0) {
        destroy_helper(helper);
        return NULL;
    }
    helper->door = stack_door_create(pool->loop, door, &pool->watches);
    helper->readable = loop_fd_create(pool->loop, helper->fd, answer_ready, helper);
    loop_fd_watch(helper->readable, LOOP_READ);
    helper->next = pool->first;
    pool->first = helper;
    release(helper);
    return helper;
}

/* Who gets the next item; NULL: nobody now. `err` is filled in if nobody ever will. */
static struct helper *choose(struct stack_look *look, struct error *err)
{
    struct helper *least = NULL, *idle = NULL;
    int working = 0, open = 0, left = 0;
    for (struct helper *helper = look->pool->first; helper != NULL; helper = helper->next) {
        open += helper->fd >= 0;
        left += helper->left_at != 0;
        if (helper->fd < 0 || helper->stalled || helper->ended)
            continue;
        if (helper->look == NULL)
            idle = helper;
        if (helper->look != look)
            continue;
        working++;
        if (helper->count < AHEAD && (least == NULL || helper->count < least->count))
            least = helper;
    }
    if (working >= look->wanted || idle != NULL || open == STACK_POOL_HELPERS)
        return working < look->wanted && idle != NULL ? idle : least;
    if (left >= STACK_POOL_HELD)
        error_set(err, WHY_MANY);
    else
        idle = start(look->pool, err);
    return idle != NULL ? idle : least;
}

static int give(struct helper *helper, struct stack_look *look, size_t number)
{
    Hvdrun__StackWork work = HVDRUN__STACK_WORK__INIT;
    struct stack_item *item = &look->items[number];
    work.look = look->number;
    work.item = (uint32_t)number;
    work.pid = (uint32_t)item->pid;
    work.depth = item->plain ? LOOK_PYTHON : look->depth;
    work.deadline_ns = look->deadline_ns;
    if (helper->count == 0)
        helper->since_ms = clock_mono_ms();
    helper->look = look;
    helper->items[helper->count++] = number;
    item->given = true;
    return piped_message_write(helper->fd, &work.base);
}

static void dispatch(struct stack_look *look)
{
    for (; look->next < look->count; look->next++) {
        size_t number = look->order[look->next];
        struct stack_item *item = &look->items[number];
        struct error err = ERROR_INIT;
        if (item->done || item->given)
            continue;
        struct helper *helper = choose(look, &err);
        if (helper == NULL && err.text[0] == '\0')
            return;
        if (helper == NULL)
            set_done(look, item, mem_strdup(err.text));
        else if (give(helper, look, number) < 0)
            close_streams(helper); /* it dies, and then the item goes on */
    }
    if (look->done == look->count)
        loop_timer_set(look->timer, 0); /* `finished` comes from there */
}

/* What the silent helpers have not begun goes to others. */
static void take_from_stalled(struct stack_look *look, int64_t now)
{
    for (struct helper *helper = look->pool->first; helper != NULL; helper = helper->next) {
        if (helper->look != look || helper->stalled || now - helper->since_ms <= STALL_MS)
            continue;
        helper->stalled = true;
        for (size_t i = 1; i < helper->count; i++)
            take_back(look, helper->items[i]);
    }
    look->answered_ms = now;
    dispatch(look);
}

static void give_up(struct stack_look *look)
{
    for (struct helper *helper = look->pool->first; helper != NULL; helper = helper->next) {
        if (helper->look != look)
            continue;
        struct stack_item *item = &look->items[helper->items[0]];
        if (item->done) { /* and it will say the same */
            release(helper);
            continue;
        }
        /* every process waits for a page or a disk now and then */
        bool waits = clock_mono_ms() - helper->since_ms > STALL_MS && held_child_waits(helper->pid);
        if (waits)
            note_slow(look->pool, item->pid);
        set_done(look, item, waits ? mem_strdup(WHY_HELD) : NULL);
        leave_behind(helper, item->pid);
    }
    for (size_t i = 0; i < look->count; i++) { /* it was so before, and there was no second try */
        if (look->items[i].last && !look->items[i].done)
            set_done(look, &look->items[i], mem_strdup(WHY_HELD));
    }
}

static void tick(void *context)
{
    struct stack_look *look = context;
    int64_t now = clock_mono_ms();
    bool late = clock_mono_ns() > look->deadline_ns + LATE_MS * INT64_C(1000000);
    if (look->done < look->count && !late) {
        if (now - look->answered_ms > STALL_MS)
            take_from_stalled(look, now);
        loop_timer_set(look->timer, look->done < look->count ? TICK_MS : 0);
        return;
    }
    give_up(look);
    look->finished(look->context);
}

/* The kernel still holds the helper that was sent there before. */
static bool is_held(const struct stack_pool *pool, pid_t pid)
{
    for (const struct helper *helper = pool->first; helper != NULL; helper = helper->next) {
        if (helper->left_at == pid && held_child_status(helper->pid) >= 0)
            return true;
    }
    return false;
}

static void make_order(struct stack_look *look)
{
    size_t place = 0;
    look->order = mem_array(look->count + 1, sizeof(*look->order));
    for (int last = 0; last < 2; last++) {
        for (size_t i = 0; i < look->count; i++) {
            look->items[i].last = is_slow(look->pool, look->items[i].pid);
            if (look->items[i].last == (last == 1))
                look->order[place++] = i;
        }
    }
}

static int helpers_at_first(bool native)
{
    long cpus = native ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    return cpus <= FIRST ? FIRST : cpus < STACK_POOL_HELPERS ? (int)cpus : STACK_POOL_HELPERS;
}

struct stack_look *stack_pool_look(struct stack_pool *pool, struct stack_item *items, size_t count,
                                   enum look_depth depth, int64_t limit_ms,
                                   void (*done)(void *context), void *context)
{
    struct stack_look *look =
        MEM_NEW((struct stack_look){.pool = pool,
                                    .items = items,
                                    .count = count,
                                    .depth = depth,
                                    .number = ++pool->looks,
                                    .wanted = helpers_at_first(depth > LOOK_PYTHON),
                                    .deadline_ns = clock_mono_ns() + limit_ms * 1000000,
                                    .answered_ms = clock_mono_ms(),
                                    .finished = done,
                                    .context = context});
    look->timer = loop_timer_create(pool->loop, tick, look);
    make_order(look);
    for (size_t i = 0; i < count; i++) {
        if (is_held(pool, items[i].pid))
            set_done(look, &items[i], mem_strdup(WHY_HELD));
    }
    dispatch(look);
    loop_timer_set(look->timer, look->done < count ? TICK_MS : 0);
    return look;
}

void stack_look_destroy(struct stack_look *look)
{
    if (look == NULL)
        return;
    for (struct helper *helper = look->pool->first; helper != NULL; helper = helper->next) {
        if (helper->look == look)
            release(helper);
    }
    loop_timer_destroy(look->timer);
    free(look->order);
    free(look);
}

void stack_item_clear(struct stack_item *item)
{
    if (item->answer != NULL)
        hvdrun__stack_answer__free_unpacked(item->answer, NULL);
    free(item->why);
    free(item->remark);
    *item = (struct stack_item){.pid = item->pid};
}
