/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/place_frame.h"

#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "model/settings/mpi_names.h"

static bool is_installed(const char *file)
{
    return strstr(file, "/site-packages/") != NULL || strstr(file, "/dist-packages/") != NULL;
}

/* Debug files of the C library name its sources without their folder. */
static bool is_system(const struct stack_frame *frame)
{
    static const char *const libraries[] = {"libc.so",    "libc-",  "libpthread", "ld-linux",
                                            "linux-vdso", "[vdso]", "libm.so"};
    const char *base = text_base_name(frame->file);
    bool found = text_begins(frame->file, "../sysdeps/") || text_begins(frame->file, "./") ||
                 strcmp(frame->function, "(code without a file)") == 0;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && !found; i++)
        found = text_begins(base, libraries[i]);
    return found;
}

bool place_frame_is_standard(const struct stack_frame *frame)
{
    if (frame->native)
        return is_system(frame);
    return text_begins(frame->file, "<frozen ") ||
           (strstr(frame->file, "/python3.") != NULL && strstr(frame->file, "/lib") != NULL &&
            !is_installed(frame->file));
}

bool place_frame_is_own(const struct stack_frame *frame)
{
    return !place_frame_is_standard(frame) && !is_installed(frame->file) &&
           strstr(text_base_name(frame->file), ".so") == NULL;
}

const char *place_frame_mpi_call(const struct stack_frame *frame)
{
    return frame->native ? mpi_names_call(frame->function) : NULL;
}

bool place_frame_is_mpi(const struct stack_frame *frame)
{
    return place_frame_mpi_call(frame) != NULL || (frame->native && mpi_names_library(frame->file));
}

/* It is of a module that waits for threads or processes. */
static bool waits_for_others(const struct stack_frame *frame)
{
    static const char *const modules[] = {
        "/subprocess.py",    "/selectors.py",        "/threading.py", "/queue.py",
        "/multiprocessing/", "/concurrent/futures/", "/asyncio/"};
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        if (strstr(frame->file, modules[i]) != NULL)
            return true;
    }
    return false;
}

uint64_t place_frame_hash(const struct stack_frame *frame, uint64_t hash)
{
    const char *base = text_base_name(frame->file);
    hash = hash_add(hash, frame->function, strlen(frame->function) + 1);
    hash = hash_add(hash, base, strlen(base) + 1);
    return hash_add(hash, &frame->line, sizeof(frame->line));
}

void place_frame_text(const struct stack_frame *frame, struct buf *out)
{
    if (frame->file[0] == '\0')
        buf_puts(out, frame->function);
    else if (frame->line > 0)
        buf_printf(out, "%s:%d %s", text_base_name(frame->file), frame->line, frame->function);
    else
        buf_printf(out, "%s %s", text_base_name(frame->file), frame->function);
}

/* The frames that count at all: of Python those of Python, of others those up to a call of MPI. */
static size_t counting(const struct stack *stack)
{
    for (size_t i = 0; i < stack->count; i++) {
        if (!stack->bare && stack->frames[i].native)
            return i;
        if (stack->bare && place_frame_is_mpi(&stack->frames[i]))
            return i + 1;
    }
    return stack->count;
}

size_t place_frames_telling(const struct stack *stack, bool *waits)
{
    size_t outer = stack->bare ? 1 : 0, all = counting(stack), count = all;
    *waits = text_begins(stack->doing, "calls wait4") || text_begins(stack->doing, "calls waitid");
    if (stack->count > outer && strcmp(stack->frames[outer].function, STACK_MORE_FRAMES) == 0)
        return 0;
    for (; count > outer && place_frame_is_standard(&stack->frames[count - 1]); count--)
        *waits = *waits || waits_for_others(&stack->frames[count - 1]);
    return count > 0 ? count : all;
}
