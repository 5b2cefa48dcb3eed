/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/python.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define INTERPRETERS_MAX 256
#define LINKS_MAX 5000 /* frames that are followed: shims and unfinished ones as well */
#define OFFSET_MAX ((int64_t)1 << 24)
#define FIRST_SHIM 3
#define LAST_SHIM 4

/* In glibc's struct pthread: the thread's number in the kernel. Versions before 3.11 do not keep
 * it. The caller checks whether the process has such a thread. */
#ifdef __aarch64__
#define PTHREAD_TID 208
#else
#define PTHREAD_TID 720
#endif

int python_init(struct python *python, struct memory *memory, uint64_t runtime, int minor)
{
    *python = (struct python){.memory = memory, .runtime = runtime};
    return python_layout_read(minor, memory, runtime, &python->layout);
}

void python_destroy(struct python *python)
{
    code_cache_destroy(&python->codes);
}

/* The thread state that holds the GIL of an interpreter; 0: none. */
static int read_holder(struct python *python, uint64_t interp, uint64_t *holder)
{
    const struct python_layout *layout = &python->layout;
    uint64_t gil = 0;
    int32_t locked = 0;
    *holder = 0;
    if (layout->free_threaded)
        return 0;
    if (layout->runtime_current != LAYOUT_NONE)
        return memory_pointer(python->memory, python->runtime + layout->runtime_current, holder);
    if (memory_pointer(python->memory, interp + layout->interp_gil, &gil) < 0)
        return -1;
    if (gil == 0)
        return 0;
    if (memory_i32(python->memory, gil + layout->gil_locked, &locked) < 0)
        return -1;
    return locked == 1 ? memory_pointer(python->memory, gil + layout->gil_holder, holder) : 0;
}

static int read_native(struct python *python, struct python_thread *thread)
{
    const struct python_layout *layout = &python->layout;
    if (memory_u64(python->memory, thread->address + layout->thread_id, &thread->pthread) < 0)
        return -1;
    if (layout->thread_native_id != LAYOUT_NONE)
        return memory_u64(python->memory, thread->address + layout->thread_native_id,
                          (uint64_t *)&thread->native);
    int32_t tid = 0;
    if (memory_is_pointer(thread->pthread) &&
        memory_i32(python->memory, thread->pthread + PTHREAD_TID, &tid) == 0)
        thread->native = tid;
    return 0;
}

struct thread_list {
    struct python_thread *items;
    size_t count;
};

static int read_interpreter(struct python *python, uint64_t interp, struct thread_list *list)
{
    const struct python_layout *layout = &python->layout;
    uint64_t at = 0, owner = 0, holder = 0;
    if (memory_pointer(python->memory, interp + layout->interp_threads, &at) < 0 ||
        read_holder(python, interp, &holder) < 0)
        return -1;
    while (at != 0 && list->count < PYTHON_THREADS_MAX) {
        struct python_thread thread = {.address = at, .holds_gil = at == holder};
        if (memory_u64(python->memory, at + layout->thread_interp, &owner) < 0 || owner != interp ||
            read_native(python, &thread) < 0 ||
            memory_pointer(python->memory, at + layout->thread_next, &at) < 0)
            return -1;
        MEM_ADD(list->items, list->count) = thread;
    }
    return 0;
}

static int read_threads(struct python *python, struct thread_list *list)
{
    const struct python_layout *layout = &python->layout;
    uint64_t interp = 0;
    list->count = 0;
    if (memory_pointer(python->memory, python->runtime + layout->runtime_interpreters, &interp) < 0)
        return -1;
    for (int i = 0; interp != 0 && i < INTERPRETERS_MAX; i++) {
        if (read_interpreter(python, interp, list) < 0 ||
            memory_pointer(python->memory, interp + layout->interp_next, &interp) < 0)
            return -1;
    }
    return 0;
}

int python_threads(struct python *python, struct python_thread **out, size_t *count)
{
    struct thread_list list = {.items = NULL};
    int result = -1;
    for (int i = 0; result < 0 && i < PYTHON_TRIES; i++)
        result = read_threads(python, &list);
    if (result < 0) {
        free(list.items);
        list = (struct thread_list){.items = NULL};
    }
    for (size_t i = 0; i < list.count / 2; i++) { /* the interpreter lists the newest first */
        struct python_thread other = list.items[i];
        list.items[i] = list.items[list.count - 1 - i];
        list.items[list.count - 1 - i] = other;
    }
    *out = list.items;
    *count = list.count;
    return result;
}

struct frame_link {
    uint64_t frame;
    const struct code *code;
    int line;
};

struct frame_walk {
    struct frame_link *links;
    size_t count;
    bool cut;
};

static int first_frame(struct python *python, const struct python_thread *thread, uint64_t *frame)
{
    const struct python_layout *layout = &python->layout;
    uint64_t at = thread->address + layout->thread_frame;
    if (layout->cframe_frame != LAYOUT_NONE) {
        uint64_t cframe = 0;
        if (memory_pointer(python->memory, at, &cframe) < 0)
            return -1;
        if (cframe == 0) {
            *frame = 0;
            return 0;
        }
        at = cframe + layout->cframe_frame;
    }
    return memory_pointer(python->memory, at, frame);
}

/* The start of the instructions that a frame runs. In builds without the GIL, each thread can have
 * a copy of its own. */
static int code_start(struct python *python, const struct code *code, const unsigned char *bytes,
                      uint64_t *start)
{
    const struct python_layout *layout = &python->layout;
    *start = code->address + layout->code_start;
    if (layout->frame_copy == LAYOUT_NONE)
        return 0;
    uint32_t copy = memory_u32_at(bytes + layout->frame_copy);
    if (copy == 0)
        return 0;
    if (copy > PYTHON_THREADS_MAX || !memory_is_pointer(code->copies))
        return -1;
    return memory_u64(python->memory, code->copies + 8 + 8 * (uint64_t)copy, start);
}

/* Fills in the line of a frame, whose bytes these are. -1: that cannot be its position. */
static int find_line(struct python *python, const unsigned char *bytes, struct frame_link *link)
{
    const struct python_layout *layout = &python->layout;
    const struct code *code = link->code;
    int64_t offset = 0;
    if (layout->code_start == LAYOUT_NONE) {
        int32_t position = (int32_t)memory_u32_at(bytes + layout->frame_position);
        int32_t line = (int32_t)memory_u32_at(bytes + layout->frame_line);
        bool traced = layout->frame_trace != LAYOUT_NONE
                          ? memory_u64_at(bytes + layout->frame_trace) != 0
                          : line != 0;
        if (traced) {
            link->line = line > 0 ? line : 0;
            return 0;
        }
        offset = layout->minor == 10 ? 2 * (int64_t)position : position;
    } else {
        uint64_t start = 0;
        if (code_start(python, code, bytes, &start) < 0)
            return -1;
        offset = (int64_t)(memory_u64_at(bytes + layout->frame_position) - start);
    }
    if (offset < -2 || offset >= OFFSET_MAX || offset % 2 != 0)
        return -1;
    link->line =
        line_of_offset(layout->minor, code->table, code->table_length, code->first_line, offset);
    return 0;
}

/* Reads one frame. `*shim`: it only says where C called the interpreter. */
static int read_frame(struct python *python, struct frame_link *link, bool *shim, uint64_t *next)
{
    const struct python_layout *layout = &python->layout;
    unsigned char bytes[4096];
    uint32_t size = python_layout_frame_size(layout);
    if (size > sizeof(bytes) || memory_read(python->memory, link->frame, bytes, size) < 0)
        return -1;
    unsigned owner = layout->frame_owner != LAYOUT_NONE ? bytes[layout->frame_owner] : 0;
    *next = memory_u64_at(bytes + layout->frame_back);
    *shim = owner >= FIRST_SHIM;
    if (owner > LAST_SHIM || (*next != 0 && !memory_is_pointer(*next)))
        return -1;
    if (*shim)
        return 0;
    uint64_t code = memory_u64_at(bytes + layout->frame_code);
    if (layout->minor >= 14)
        code &= ~(uint64_t)LAYOUT_TAG_BITS;
    link->code = code_read(&python->codes, python->memory, layout, code);
    return link->code != NULL ? find_line(python, bytes, link) : -1;
}

static int walk_frames(struct python *python, const struct python_thread *thread,
                       struct frame_walk *walk)
{
    uint64_t at = 0;
    walk->count = 0;
    walk->cut = false;
    if (first_frame(python, thread, &at) < 0)
        return -1;
    for (int i = 0; at != 0; i++) {
        struct frame_link link = {.frame = at};
        bool shim = false;
        if (walk->count == PYTHON_FRAMES_MAX || i == LINKS_MAX) {
            walk->cut = true;
            return 0;
        }
        if (read_frame(python, &link, &shim, &at) < 0)
            return -1;
        if (!shim) {
            MEM_ADD(walk->links, walk->count) = link;
        }
    }
    return 0;
}

/* The lines may differ: the thread went on inside of the same functions. */
static bool same(const struct frame_walk *a, const struct frame_walk *b)
{
    bool equal = a->count == b->count && a->cut == b->cut;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = a->links[i].frame == b->links[i].frame && a->links[i].code == b->links[i].code;
    return equal;
}

static void take(const struct frame_walk *walk, struct python_stack *out)
{
    *out = (struct python_stack){.frames = mem_array(walk->count + 1, sizeof(*out->frames)),
                                 .count = walk->count,
                                 .cut = walk->cut};
    for (size_t i = 0; i < walk->count; i++)
        out->frames[i] = (struct stack_frame){.function = walk->links[i].code->function,
                                              .file = walk->links[i].code->file,
                                              .line = walk->links[i].line};
}

/* A rank that was forked by --warm has the frames of features/warm/mother.py below its own. */
static void leave_out_mother(struct python_stack *stack)
{
    for (size_t i = 0; i < stack->count; i++) {
        if (strcmp(stack->frames[i].file, PYTHON_MOTHER_FILE) == 0)
            stack->count = i;
    }
}

int python_stack_read(struct python *python, const struct python_thread *thread,
                      struct python_stack *out)
{
    struct frame_walk walks[2] = {{.links = NULL}, {.links = NULL}};
    int result = -1;
    *out = (struct python_stack){.frames = NULL};
    for (int i = 0; result < 0 && i < PYTHON_TRIES && python->memory->budget > 0; i++) {
        if (walk_frames(python, thread, &walks[0]) == 0 &&
            walk_frames(python, thread, &walks[1]) == 0 && same(&walks[0], &walks[1]))
            result = 0;
    }
    if (result == 0)
        take(&walks[1], out);
    leave_out_mother(out);
    free(walks[0].links);
    free(walks[1].links);
    return result;
}

void python_stack_destroy(struct python_stack *stack)
{
    free(stack->frames);
    *stack = (struct python_stack){.frames = NULL};
}
