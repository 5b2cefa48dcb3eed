/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/asyncio.h"

#include <string.h>

#include "stacks/objects.h"

#define TASK_BYTES 320 /* of a task, in which its coroutine is looked for */
#define HEAD 16        /* of each object: count of references, type */
#define STACK_MAX 4096 /* values on the stack of a frame */

/* Where coroutines and frames have their members. The state says whether a coroutine is suspended:
 * it is `lowest` to `highest` then. */
struct coroutine_layout {
    uint32_t frame; /* a pointer before 3.11; the frame itself later */
    uint32_t state; /* LAYOUT_NONE: the frame itself says it */
    int lowest, highest;
    uint32_t globals; /* of a frame */
    uint32_t depth;   /* of a frame: how many values are on its stack; see top_of_stack() */
    uint32_t values;  /* of a frame: where they begin */
};

static const struct coroutine_layout layouts[] = {
    [8] = {16, LAYOUT_NONE, 0, 0, 48, 72, 64},  [9] = {16, LAYOUT_NONE, 0, 0, 48, 72, 64},
    [10] = {16, LAYOUT_NONE, 0, 0, 48, 80, 64}, [11] = {80, 75, -1, -1, 8, 64, 72},
    [12] = {72, 67, -1, -1, 24, 64, 72},        [13] = {72, 67, -2, -1, 24, 64, 72},
};

static const struct coroutine_layout *layout_of(const struct python *python)
{
    int minor = python->layout.minor;
    bool known = minor >= LAYOUT_OLDEST && minor < (int)(sizeof(layouts) / sizeof(layouts[0])) &&
                 !python->layout.free_threaded;
    return known ? &layouts[minor] : NULL;
}

uint64_t asyncio_loop_frame(const struct python_stack *stack)
{
    static const char file[] = "asyncio/base_events.py";
    for (size_t i = 0; i < stack->count; i++) {
        const struct python_frame *frame = &stack->frames[i];
        size_t length = strlen(frame->file), end = sizeof(file) - 1;
        if (length >= end && strcmp(frame->file + length - end, file) == 0)
            return frame->address;
    }
    return 0;
}

/* The value that the frame left on its stack: what it waits for. 0: none. */
static uint64_t top_of_stack(struct python *python, const struct coroutine_layout *layout,
                             uint64_t frame)
{
    struct memory *memory = python->memory;
    uint64_t begin = frame + layout->values, end = 0, top = 0;
    int32_t depth = 0;
    if (python->layout.minor < 10) { /* it has a pointer behind the last one */
        if (memory_pointer(memory, frame + layout->depth, &end) < 0 || end == 0)
            return 0;
    } else {
        bool inside = python->layout.minor >= 11;
        if ((!inside && memory_pointer(memory, frame + layout->values, &begin) < 0) ||
            memory_i32(memory, frame + layout->depth, &depth) < 0 || depth <= 0 ||
            depth > STACK_MAX)
            return 0;
        end = begin + 8 * (uint64_t)depth;
    }
    return memory_pointer(memory, end - 8, &top) == 0 ? top : 0;
}

/* The frame of a coroutine that is suspended; 0: it runs, has ended, or is none. */
static uint64_t frame_of(struct python *python, const struct coroutine_layout *layout,
                         uint64_t object)
{
    uint64_t frame = 0;
    signed char state = 0;
    if (layout->state == LAYOUT_NONE)
        return memory_pointer(python->memory, object + layout->frame, &frame) == 0 ? frame : 0;
    bool suspended = memory_read(python->memory, object + layout->state, &state, 1) == 0 &&
                     state >= layout->lowest && state <= layout->highest;
    return suspended ? object + layout->frame : 0;
}

/* From what stands for a coroutine while it is awaited to the coroutine; 0: it is none. */
static uint64_t coroutine_behind(struct python *python, uint64_t object)
{
    static const char *const own[] = {"coroutine", "generator", "async_generator"};
    static const char *const wrappers[] = {"coroutine_wrapper", "async_generator_asend",
                                           "async_generator_athrow"};
    uint64_t inner = 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (object_is(python->memory, &python->layout, object, own[i]))
            return object;
    }
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
        if (object_is(python->memory, &python->layout, object, wrappers[i]) &&
            memory_pointer(python->memory, object + HEAD, &inner) == 0)
            return inner;
    }
    return 0;
}

struct walk {
    struct python *python;
    const struct coroutine_layout *layout;
    void (*each)(void *context, const struct python_stack *stack);
    void *context;
};

/* The first coroutine that a task refers to is its own. Builds differ in where that is. */
static uint64_t own_coroutine(struct python *python, uint64_t task)
{
    unsigned char bytes[TASK_BYTES];
    if (memory_read(python->memory, task, bytes, sizeof(bytes)) < 0)
        return 0;
    for (size_t at = HEAD; at + 8 <= sizeof(bytes); at += 8) {
        uint64_t object = memory_u64_at(bytes + at);
        if (object_is(python->memory, &python->layout, object, "coroutine"))
            return object;
    }
    return 0;
}

static void take_task(void *context, uint64_t task)
{
    const struct walk *walk = context;
    struct python_frame frames[ASYNCIO_CHAIN_MAX], inner_first[ASYNCIO_CHAIN_MAX];
    size_t count = 0;
    if (!object_is(walk->python->memory, &walk->python->layout, task, "_asyncio.Task"))
        return;
    uint64_t object = own_coroutine(walk->python, task);
    while (object != 0 && count < ASYNCIO_CHAIN_MAX) {
        uint64_t frame = frame_of(walk->python, walk->layout, object);
        if (frame == 0 || python_frame_read(walk->python, frame, &frames[count]) < 0)
            break;
        count++;
        object = coroutine_behind(walk->python, top_of_stack(walk->python, walk->layout, frame));
    }
    for (size_t i = 0; i < count; i++)
        inner_first[i] = frames[count - 1 - i];
    if (count > 0)
        walk->each(walk->context, &(struct python_stack){.frames = inner_first, .count = count});
}

void asyncio_tasks(struct python *python, uint64_t loop_frame,
                   void (*each)(void *context, const struct python_stack *stack), void *context)
{
    static const char *const names[] = {"_scheduled_tasks", "_all_tasks"};
    const struct coroutine_layout *layout = layout_of(python);
    struct walk walk = {python, layout, each, context};
    uint64_t globals = 0, set = 0;
    if (layout == NULL ||
        memory_pointer(python->memory, loop_frame + layout->globals, &globals) < 0)
        return;
    uint64_t module = object_dict_get(python->memory, &python->layout, globals, "tasks");
    uint64_t dict = object_module_dict(python->memory, &python->layout, module);
    for (size_t i = 0; set == 0 && i < sizeof(names) / sizeof(names[0]); i++)
        set = object_weak_set(python->memory, &python->layout,
                              object_dict_get(python->memory, &python->layout, dict, names[i]));
    if (set != 0)
        object_set_walk(python->memory, set, ASYNCIO_TASKS_MAX, take_task, &walk);
}
