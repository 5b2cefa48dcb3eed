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

/* A call of MPI, or a function inside of its library. */
static bool is_mpi(const struct stack_frame *frame)
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

/* The frames that count at all: of Python those of Python, of others those up to a call of MPI. */
static size_t counting(const struct stack *stack)
{
    for (size_t i = 0; i < stack->count; i++) {
        if (!stack->bare && stack->frames[i].native)
            return i;
        if (stack->bare && is_mpi(&stack->frames[i]))
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

/* ---- Calls of torch.distributed -------------------------------------------------------------- */

#define TORCH "/torch/distributed/"

static bool is_in(const char *const *list, const char *word, size_t length)
{
    for (; *list != NULL; list++) {
        if (strlen(*list) == length && strncmp(word, *list, length) == 0)
            return true;
    }
    return false;
}

/* Of Python. With async_op=True these return at once. */
static bool is_torch(const struct stack_frame *frame)
{
    static const char *const calls[] = {"all_reduce",
                                        "all_gather",
                                        "all_gather_into_tensor",
                                        "_all_gather_base",
                                        "all_gather_object",
                                        "all_to_all",
                                        "all_to_all_single",
                                        "barrier",
                                        "monitored_barrier",
                                        "broadcast",
                                        "broadcast_object_list",
                                        "gather",
                                        "gather_object",
                                        "recv",
                                        "recv_object_list",
                                        "reduce",
                                        "reduce_scatter",
                                        "reduce_scatter_tensor",
                                        "_reduce_scatter_base",
                                        "scatter",
                                        "scatter_object_list",
                                        "send",
                                        NULL};
    const char *name = strstr(frame->file, TORCH);
    return !frame->native && name != NULL && strcmp(name, TORCH "distributed_c10d.py") == 0 &&
           is_in(calls, frame->function, strlen(frame->function));
}

static bool does(const struct stack *stack, const char *const *calls)
{
    static const char before[] = "calls ";
    const char *name = stack->doing + strlen(before);
    return strncmp(stack->doing, before, strlen(before)) == 0 &&
           is_in(calls, name, strcspn(name, " ,"));
}

static bool sleeps(const struct stack *stack)
{
    static const char *const calls[] = {"clock_nanosleep", "nanosleep", NULL};
    return does(stack, calls);
}

/* Not a socket. */
static bool is_at_file(const struct stack *stack)
{
    static const char *const calls[] = {
        "open",  "openat", "openat2",    "read",   "pread64", "pwrite64",
        "stat",  "lstat",  "newfstatat", "statx",  "access",  "getdents64",
        "flock", "fsync",  "fdatasync",  "rename", "unlink",  NULL};
    return does(stack, calls);
}

/* Only of Python, and all of it is known: frames that are left out have a name in brackets. */
static bool is_plain(const struct stack *stack)
{
    bool plain = !stack->bare && !stack->held && stack->count > 0;
    for (size_t i = 0; i < stack->count && plain; i++)
        plain = stack->frames[i].native || stack->frames[i].function[0] != '(';
    return plain;
}

/* In its own library, Python waits for other threads. Only run() calls what the program gave it. */
static bool calls_compiled_code(const struct stack *stack)
{
    size_t count = stack->count;
    while (count > 0 && stack->frames[count - 1].native)
        count--;
    const struct stack_frame *last = count > 0 ? &stack->frames[count - 1] : NULL;
    return last == NULL || !place_frame_is_standard(last) || strcmp(last->function, "run") == 0;
}

bool torch_call_is_possible(const struct stack *stack)
{
    bool works = !sleeps(stack) && !is_at_file(stack);
    bool possible = !is_plain(stack) || (works && calls_compiled_code(stack));
    for (size_t i = 0; i < stack->count; i++)
        possible = possible || strstr(stack->frames[i].file, TORCH "distributed_c10d") != NULL;
    return possible;
}

/* The innermost frame of Python that is not of its own library. */
static bool is_in_torch(const struct stack *stack)
{
    size_t count = stack->count;
    while (count > 0 &&
           (stack->frames[count - 1].native || place_frame_is_standard(&stack->frames[count - 1])))
        count--;
    return is_plain(stack) && count > 0 && is_torch(&stack->frames[count - 1]);
}

/* torch may import a module in its call. */
enum torch_call torch_call_of(const struct stack *stack)
{
    bool at_file = is_at_file(stack);
    if (is_in_torch(stack) && !at_file)
        return TORCH_CALL_WAITS;
    return (at_file || sleeps(stack)) && !torch_call_is_possible(stack) ? TORCH_CALL_NONE
                                                                        : TORCH_CALL_UNKNOWN;
}
