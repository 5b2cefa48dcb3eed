/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stacks/stack_helper_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/modules.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "features/stacks/stack_door.h"
#include "model/exit/signal_name.h"
#include "node/proc_state.h"
#include "stacks/native.h"
#include "stacks/stack.h"
#include "stacks/tasks.h"

#define WORD "--stacks" /* the argument that makes hvdrun-agent the helper */

/* ---- The agent's end ------------------------------------------------------------------------- */

pid_t stack_helper_start(struct helpers *helpers, const char *program,
                         void (*exited)(void *context, int wait_status), void *context, int *stream,
                         int *door, struct error *err)
{
    int streams[2] AUTO_FD_PAIR = {-1, -1}, doors[2] AUTO_FD_PAIR = {-1, -1};
    int null_fd AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (null_fd < 0 || fd_socketpair(streams) < 0 || fd_socketpair(doors) < 0)
        return error_errno(err, errno, "cannot make sockets");
    char *number AUTO_FREE = mem_printf("%d", doors[1]);
    char *const argv[] = {(char *)"hvdrun-agent", (char *)WORD, number, NULL};
    const struct child_spec child = {.path = program,
                                     .argv = argv,
                                     .fds = {streams[1], streams[1], null_fd},
                                     .keep_fd = doors[1]};
    pid_t pid = helpers_start(helpers, &child, exited, context, err);
    if (pid < 0)
        return -1;
    fd_nonblock(streams[0]);
    *stream = streams[0];
    *door = doors[0];
    streams[0] = doors[0] = -1;
    return pid;
}

int stack_helper_answer(struct buf *bytes, Hvdrun__StackAnswer **answer)
{
    const uint8_t *body;
    size_t length;
    int there = piped_message_next(bytes, STACK_ANSWER_BYTES, &body, &length);
    *answer = there > 0 ? hvdrun__stack_answer__unpack(NULL, length, body) : NULL;
    if (*answer == NULL)
        return there == 0 ? 0 : -1;
    buf_consume(bytes, PIPED_HEADER + length);
    return 1;
}

char *stack_helper_death(int wait_status)
{
    const char *name = WIFSIGNALED(wait_status) ? signal_short_name(WTERMSIG(wait_status)) : NULL;
    if (name != NULL)
        return mem_printf("hvdrun's helper process was killed by SIG%s", name);
    return mem_strdup("hvdrun's helper process has failed");
}

/* ---- What a helper answers of one process ---------------------------------------------------- */

#define FRAME_BYTES 16 /* a frame costs this and its text */

size_t stack_answer_cost(const Hvdrun__PythonStack *stack)
{
    size_t cost = FRAME_BYTES;
    for (size_t i = 0; i < stack->n_frames; i++)
        cost += FRAME_BYTES + strlen(stack->frames[i]->function) + strlen(stack->frames[i]->file);
    return cost;
}

static Hvdrun__PythonFrame *new_frame(const struct stack_frame *source)
{
    Hvdrun__PythonFrame *frame = mem_alloc(sizeof(*frame));
    hvdrun__python_frame__init(frame);
    frame->function = mem_strdup(source->function);
    frame->file = mem_strdup(source->file);
    frame->line = source->line > 0 ? (uint32_t)source->line : 0;
    frame->native = source->native;
    return frame;
}

/* `thread`: NULL for none. `above`: a frame above all others; NULL. The caller sets `doing`. */
static Hvdrun__PythonStack *new_stack(enum stack_role role, const char *trouble,
                                      const struct process_thread *thread, const char *above)
{
    Hvdrun__PythonStack *stack = mem_alloc(sizeof(*stack));
    size_t count = thread != NULL ? thread->count : 0;
    hvdrun__python_stack__init(stack);
    stack->role = role;
    stack->doing = NULL;
    stack->trouble = mem_strdup(trouble != NULL ? trouble : "");
    stack->name = mem_strdup(thread != NULL ? thread->name : "");
    stack->call = thread != NULL ? thread->mpi_call : 0;
    stack->mpi_helper = thread != NULL && thread->helper;
    stack->frames = mem_array(count + 1, sizeof(Hvdrun__PythonFrame *));
    if (above != NULL)
        stack->frames[stack->n_frames++] =
            new_frame(&(struct stack_frame){.function = above, .file = ""});
    for (size_t i = 0; i < count; i++)
        stack->frames[stack->n_frames++] = new_frame(&thread->frames[i]);
    return stack;
}

Hvdrun__PythonStack *stack_answer_trouble(const char *trouble)
{
    Hvdrun__PythonStack *stack = new_stack(STACK_MAIN, trouble, NULL, NULL);
    stack->doing = mem_strdup("");
    return stack;
}

/* If it fits into what is left of the text of one worker. */
static void add_stack(Hvdrun__StackAnswer *answer, Hvdrun__PythonStack *stack, size_t *left)
{
    size_t cost = stack_answer_cost(stack);
    if (cost > *left) {
        answer->whole = false;
        hvdrun__python_stack__free_unpacked(stack, NULL);
        return;
    }
    *left -= cost;
    MEM_ADD(answer->stacks, answer->n_stacks) = stack;
}

/* What a thread does; of a first thread, also on which file system it waits. */
static void set_doing(pid_t pid, const struct process_thread *thread, Hvdrun__PythonStack *stack)
{
    bool held = false;
    char *doing = thread->running   ? mem_strdup(STACK_RUNNING)
                  : thread->tid > 0 ? proc_state_thread(pid, thread->tid, thread->call, &held)
                                    : mem_strdup("");
    char *system AUTO_FREE = thread->main && !thread->running && thread->call >= 0
                                 ? file_wait_system("", thread->tid)
                                 : NULL;
    stack->held = held;
    stack->doing = system != NULL ? mem_printf("%s" STACK_ON "%s", doing, system) : doing;
    if (system != NULL)
        free(doing);
}

static void add_python(Hvdrun__StackAnswer *answer, pid_t pid, const struct process_stacks *source,
                       size_t *left)
{
    bool has_main = false;
    for (size_t i = 0; i < source->count; i++)
        has_main = has_main || source->threads[i].main;
    for (size_t i = 0; i < source->count; i++) {
        const struct process_thread *thread = &source->threads[i];
        bool is_main = has_main ? thread->main : i == 0; /* the oldest one, if none is known */
        Hvdrun__PythonStack *stack =
            new_stack(is_main ? STACK_MAIN : STACK_OTHER, NULL, thread, NULL);
        set_doing(pid, thread, stack);
        stack->holds_gil = thread->holds_gil;
        add_stack(answer, stack, left);
    }
}

/* One thread of a process whose Python is not known, or that does not run any, below the name of
 * the process. */
static Hvdrun__PythonStack *bare_stack(pid_t pid, const struct proc_state *state,
                                       const struct process_stacks *source,
                                       const struct process_thread *thread)
{
    bool is_main = thread == NULL || thread->main;
    char *text AUTO_FREE = source->trouble == NULL
                               ? mem_printf("process %s", state->name)
                               : mem_printf("process %s (%s)", state->name, source->trouble);
    Hvdrun__PythonStack *stack =
        new_stack(is_main ? STACK_MAIN : STACK_OTHER, source->trouble, thread, text);
    stack->bare = true;
    if (is_main) {
        stack->doing = mem_strdup(state->doing);
        stack->held = state->held;
    } else {
        set_doing(pid, thread, stack);
    }
    return stack;
}

static void add_bare(Hvdrun__StackAnswer *answer, const struct rights *rights, pid_t pid,
                     const struct process_stacks *source, size_t *left)
{
    struct proc_state state;
    bool runs, has_main = false;
    long call = task_call(rights, pid, pid, &runs);
    bool there = proc_state_read(pid, &call, &state) == 0;
    answer->whole = answer->whole && there;
    for (size_t i = 0; there && i < source->count; i++) {
        has_main = has_main || source->threads[i].main;
        add_stack(answer, bare_stack(pid, &state, source, &source->threads[i]), left);
    }
    if (there && !has_main)
        add_stack(answer, bare_stack(pid, &state, source, NULL), left);
    proc_state_destroy(&state);
}

/* Fills in the stacks and the remark. Without frames of Python, one line has the name of the
 * process and what it does, and native frames if these were read. */
static void fill_answer(const struct rights *rights, pid_t pid, const struct process_stacks *source,
                        Hvdrun__StackAnswer *out)
{
    size_t left = STACK_RANK_BYTES;
    out->remark = mem_strdup(source->remark != NULL ? source->remark : "");
    out->whole = source->whole;
    if (out->python && source->trouble == NULL)
        add_python(out, pid, source, &left);
    else
        add_bare(out, rights, pid, source, &left);
}

/* Only what was filled in. */
static void clear_answer(Hvdrun__StackAnswer *answer)
{
    for (size_t i = 0; i < answer->n_stacks; i++)
        hvdrun__python_stack__free_unpacked(answer->stacks[i], NULL);
    free(answer->stacks);
    free(answer->remark);
    answer->stacks = NULL;
    answer->n_stacks = 0;
    answer->remark = NULL;
}

/* ---- The helper ------------------------------------------------------------------------------ */

#define WORK_MAX 256 /* bytes of a StackWork */

struct helper {
    int door; /* of features/stacks/stack_door.h */
    struct runtime_files *files;
    struct modules *modules;
    const struct unwind_module *module; /* NULL: not loaded yet, or it cannot be */
    char *missing;                      /* why; NULL: it was not tried */
    int status;
};

/* Native frames come from a module. If it cannot be loaded, the rest of the answer is complete. */
static void load_module(struct helper *helper)
{
    struct error err = ERROR_INIT;
    const char *path = modules_find(helper->modules, "hvdrun-unwind.so", &err);
    helper->module = path != NULL ? native_load(path, &err) : NULL;
    if (helper->module == NULL)
        helper->missing = mem_strdup(err.text);
}

/* After the stacks have been read. */
static void number_calls(const struct helper *helper, pid_t pid, struct process_stacks *stacks)
{
    for (size_t i = 0; i < stacks->count; i++) {
        struct process_thread *thread = &stacks->threads[i];
        if (thread->back == 0)
            continue;
        thread->mpi_call = stack_door_call_number(helper->door, pid, thread->tid, thread->back);
        if (thread->mpi_call == 0 && errno != ESRCH && stacks->remark == NULL)
            stacks->remark = call_watches_refusal(errno);
    }
}

static void read_stacks(struct helper *helper, const Hvdrun__StackWork *work,
                        Hvdrun__StackAnswer *answer)
{
    struct process_stacks stacks;
    struct rights rights = stack_door_rights(&helper->door);
    bool native = work->depth > LOOK_PYTHON;
    pid_t pid = (pid_t)work->pid;
    answer->python =
        process_stacks_read(helper->files, &rights, pid, work->deadline_ns, &stacks) == 1;
    if (native && helper->module == NULL && helper->missing == NULL)
        load_module(helper);
    if (native && helper->module != NULL)
        process_native_read(helper->module, &rights, pid, work->deadline_ns, &stacks);
    else if (native && stacks.remark == NULL)
        stacks.remark = mem_strdup(helper->missing);
    if (work->depth >= LOOK_CALLS)
        number_calls(helper, pid, &stacks);
    fill_answer(&rights, pid, &stacks, answer);
    process_stacks_destroy(&stacks);
}

static int answer_work(struct helper *helper, const Hvdrun__StackWork *work)
{
    Hvdrun__StackAnswer answer = HVDRUN__STACK_ANSWER__INIT;
    answer.look = work->look;
    answer.item = work->item;
    answer.late = clock_mono_ns() > work->deadline_ns;
    answer.remark = NULL;
    if (!answer.late)
        read_stacks(helper, work, &answer);
    int result = piped_message_write(STDOUT_FILENO, &answer.base);
    clear_answer(&answer);
    return result;
}

/* Answers what has come. -1: it cannot. */
static int answer_all(struct helper *helper, struct buf *bytes)
{
    const uint8_t *body;
    size_t length;
    int result = 0;
    while (result == 0) {
        int there = piped_message_next(bytes, WORK_MAX, &body, &length);
        if (there == 0)
            break;
        Hvdrun__StackWork *work = there > 0 ? hvdrun__stack_work__unpack(NULL, length, body) : NULL;
        if (work == NULL)
            return -1;
        buf_consume(bytes, PIPED_HEADER + length);
        result = answer_work(helper, work);
        hvdrun__stack_work__free_unpacked(work, NULL);
    }
    return result;
}

static void *serve(void *context)
{
    struct helper *helper = context;
    struct buf bytes AUTO_BUF = BUF_INIT((size_t)1 << 20);
    helper->files = runtime_files_create();
    helper->modules = modules_create("");
    for (;;) {
        void *room = buf_reserve(&bytes, 4096);
        ssize_t got = room != NULL ? fd_read(STDIN_FILENO, room, 4096) : -1;
        buf_commit(&bytes, got > 0 ? (size_t)got : 0);
        if (got <= 0 || answer_all(helper, &bytes) < 0) {
            helper->status = got == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
            break;
        }
    }
    runtime_files_destroy(helper->files);
    modules_destroy(helper->modules);
    free(helper->missing);
    return NULL;
}

/* `door` is the number of the descriptor for features/stacks/stack_door.h. */
static int run(const char *door)
{
    struct helper helper = {.status = EXIT_FAILURE};
    int64_t fd;
    pthread_t thread;
    if (parse_int(door, 3, INT32_MAX, &fd, NULL) < 0)
        return EXIT_FAILURE;
    helper.door = (int)fd;
    prctl(PR_SET_NAME, "hvdrun-stacks");
    /* Nobody wants its core. With a limit of 0, programs that take cores would get one. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
    /* The first thread only waits. So if the kernel holds the other one, SIGKILL ends the first
     * one, and node/descendants.h knows the process. */
    if (pthread_create(&thread, NULL, serve, &helper) == 0)
        pthread_join(thread, NULL);
    return helper.status;
}

const struct helper_program stack_helper = {WORD, true, run};
