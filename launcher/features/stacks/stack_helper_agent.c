/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stacks/stack_helper_agent.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/helper_program.h"
#include "agent/modules.h"
#include "agent/piped_message.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "features/stacks/stack_answer.h"
#include "features/stacks/stack_door.h"
#include "stacks/native.h"

#define WORK_MAX 256 /* bytes of a StackWork */

struct helper {
    struct stack_door_way door;
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

static void read_stacks(struct helper *helper, const Hvdrun__StackWork *work,
                        Hvdrun__StackAnswer *answer)
{
    struct process_stacks stacks;
    struct rights rights = stack_door_rights(&helper->door);
    pid_t pid = (pid_t)work->pid;
    answer->python =
        process_stacks_read(helper->files, &rights, pid, work->deadline_ns, &stacks) == 1;
    if (work->native && helper->module == NULL && helper->missing == NULL)
        load_module(helper);
    if (work->native && helper->module != NULL)
        process_native_read(helper->module, &rights, pid, work->deadline_ns, &stacks);
    else if (work->native && stacks.remark == NULL)
        stacks.remark = mem_strdup(helper->missing);
    stack_answer_fill(&rights, pid, &stacks, answer);
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
    stack_answer_clear(&answer);
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
    helper.door.fd = (int)fd;
    prctl(PR_SET_NAME, STACK_HELPER_NAME);
    /* Nobody wants its core. With a limit of 0, programs that take cores would get one. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
    /* The first thread only waits. So if the kernel holds the other one, SIGKILL ends the first
     * one, and node/descendants.h knows the process. */
    if (pthread_create(&thread, NULL, serve, &helper) == 0)
        pthread_join(thread, NULL);
    return helper.status;
}

const struct helper_program stack_helper = {STACK_HELPER_WORD, true, run};
