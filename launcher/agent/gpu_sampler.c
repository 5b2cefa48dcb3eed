/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu_sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/nvml.h"
#include "node/usage.h"

/*
 * The helper process. For each byte on stdin it writes one answer to stdout: a GpuUsages
 * (agent/modules.h). It ends with stdin. The energy takes the driver some milliseconds, so
 * the helper asks for it every GPU_ENERGY_PERIOD_MS at most, and repeats it in between.
 */

#define GPU_HELPER_WORD "--gpus" /* the argument that makes a program the helper */
#define GPU_ENERGY_PERIOD_MS 10000

struct energy {
    bool known;
    uint64_t millijoules;
};

struct helper {
    struct nvml nvml;
    struct energy energy[GPUS_MAX];
    int64_t energy_due_ms;
};

static Hvdrun__GpuProcess *new_process(const struct nvml_process *source)
{
    Hvdrun__GpuProcess *process = mem_alloc(sizeof(*process));
    hvdrun__gpu_process__init(process);
    process->pid = source->pid;
    process->has_memory = source->memory != NVML_MEMORY_UNKNOWN;
    process->memory_bytes = process->has_memory ? source->memory : 0;
    return process;
}

static void fill(Hvdrun__GpuUsage *message, const struct gpu_usage *source)
{
    hvdrun__gpu_usage__init(message);
    message->index = source->index;
    message->uuid = mem_strdup(source->uuid);
    message->has_use = source->has_use;
    message->use_percent = source->use.gpu;
    message->memory_use_percent = source->use.memory;
    message->has_power = source->has_power;
    message->power_mw = source->power_mw;
    message->has_memory = source->has_memory;
    message->memory_bytes = source->memory.total;
    message->memory_used_bytes = source->memory.used;
    message->trouble = (uint32_t)source->trouble;
    message->n_processes = source->process_count;
    message->processes = mem_array(source->process_count + 1, sizeof(*message->processes));
    for (size_t i = 0; i < source->process_count; i++)
        message->processes[i] = new_process(&source->processes[i]);
}

static Hvdrun__GpuUsage *read_gpu(struct helper *helper, unsigned index, bool energy)
{
    struct gpu_usage usage;
    Hvdrun__GpuUsage *message = mem_alloc(sizeof(*message));
    struct energy *last = &helper->energy[index];
    gpu_usage_read(&helper->nvml, index, energy, &usage);
    fill(message, &usage);
    if (energy)
        *last = (struct energy){usage.has_energy, usage.energy_mj};
    message->has_energy = last->known && usage.trouble == 0;
    message->energy_mj = message->has_energy ? last->millijoules : 0;
    return message;
}

static Hvdrun__GpuUsages *read_gpus(struct helper *helper)
{
    bool energy = clock_mono_ms() >= helper->energy_due_ms;
    Hvdrun__GpuUsages *message = mem_alloc(sizeof(*message));
    hvdrun__gpu_usages__init(message);
    message->n_gpus = gpu_usage_count(&helper->nvml);
    message->gpus = mem_array(message->n_gpus + 1, sizeof(*message->gpus));
    for (unsigned i = 0; i < message->n_gpus; i++)
        message->gpus[i] = read_gpu(helper, i, energy);
    if (energy)
        helper->energy_due_ms = clock_mono_ms() + GPU_ENERGY_PERIOD_MS;
    return message;
}

static int answer(struct helper *helper)
{
    Hvdrun__GpuUsages *message = read_gpus(helper);
    int result = piped_message_write(STDOUT_FILENO, &message->base);
    hvdrun__gpu_usages__free_unpacked(message, NULL);
    return result;
}

static int run(const char *operand)
{
    (void)operand;
    struct helper helper = {.energy_due_ms = 0};
    struct error err = ERROR_INIT;
    char asked;
    prctl(PR_SET_NAME, "hvdrun-gpus");
    if (nvml_open(&helper.nvml, &err) < 0)
        return GPU_HELPER_NONE;
    while (fd_read(STDIN_FILENO, &asked, 1) == 1) {
        if (answer(&helper) < 0)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

const struct helper_program gpu_helper = {GPU_HELPER_WORD, false, run};

#define ANSWER_MAX ((size_t)1 << 20)
#define ASKERS_MAX 4

struct asker {
    void (*done)(void *context, const Hvdrun__GpuUsages *gpus);
    void *context;
};

struct gpu_sampler {
    struct loop *loop;
    struct helpers *helpers;
    const char *program;
    struct gpu_limits limits;
    struct loop_timer *wait;  /* of those who ask */
    struct loop_timer *watch; /* the helper is sick, or idle */
    pid_t pid;                /* of the helper, until it is reaped; 0: none */
    int ask_fd, answer_fd;    /* -1: no helper, or it was given up */
    struct loop_fd *readable;
    struct buf bytes;
    bool asked; /* an answer is to come */
    bool none;  /* there is no driver */
    int64_t pause_until_ms;
    Hvdrun__GpuUsages *last; /* NULL: none yet */
    int64_t last_ms;
    struct asker askers[ASKERS_MAX];
    size_t asker_count;
};

static void close_streams(struct gpu_sampler *sampler)
{
    loop_fd_destroy(sampler->readable);
    sampler->readable = NULL;
    fd_close(&sampler->answer_fd);
    fd_close(&sampler->ask_fd);
    buf_clear(&sampler->bytes);
    sampler->asked = false;
    loop_timer_clear(sampler->watch);
}

/* To all who wait. One of them may ask again at once. */
static void tell(struct gpu_sampler *sampler)
{
    bool fresh = sampler->last != NULL &&
                 clock_mono_ms() - sampler->last_ms < sampler->limits.fresh && !sampler->none;
    struct asker askers[ASKERS_MAX];
    size_t count = sampler->asker_count;
    memcpy(askers, sampler->askers, sizeof(askers));
    sampler->asker_count = 0;
    loop_timer_clear(sampler->wait);
    for (size_t i = 0; i < count; i++)
        askers[i].done(askers[i].context, fresh ? sampler->last : NULL);
}

static void wait_over(void *context)
{
    tell(context);
}

static void give_up(struct gpu_sampler *sampler)
{
    if (sampler->pid > 0)
        kill(-sampler->pid, SIGKILL);
    sampler->pause_until_ms = clock_mono_ms() + sampler->limits.pause;
    close_streams(sampler);
    tell(sampler);
}

static void watch_over(void *context)
{
    struct gpu_sampler *sampler = context;
    if (sampler->asked)
        give_up(sampler);
    else
        close_streams(sampler); /* the helper ends with its stdin */
}

struct gpu_sampler *gpu_sampler_create(struct loop *loop, struct helpers *helpers,
                                       const char *program, struct gpu_limits limits)
{
    struct gpu_sampler *sampler = MEM_NEW((struct gpu_sampler){.loop = loop,
                                                               .helpers = helpers,
                                                               .program = program,
                                                               .limits = limits,
                                                               .ask_fd = -1,
                                                               .answer_fd = -1});
    buf_init(&sampler->bytes, ANSWER_MAX + PIPED_HEADER);
    sampler->wait = loop_timer_create(loop, wait_over, sampler);
    sampler->watch = loop_timer_create(loop, watch_over, sampler);
    return sampler;
}

void gpu_sampler_destroy(struct gpu_sampler *sampler)
{
    if (sampler == NULL)
        return;
    if (sampler->pid > 0)
        helpers_let_go(sampler->helpers, sampler->pid);
    close_streams(sampler);
    loop_timer_destroy(sampler->wait);
    loop_timer_destroy(sampler->watch);
    if (sampler->last != NULL)
        hvdrun__gpu_usages__free_unpacked(sampler->last, NULL);
    buf_destroy(&sampler->bytes);
    free(sampler);
}

static void helper_exited(void *context, int wait_status)
{
    struct gpu_sampler *sampler = context;
    bool idle = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == EXIT_SUCCESS;
    bool by_us =
        WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGTERM; /* with the workers */
    sampler->pid = 0;
    sampler->none = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == GPU_HELPER_NONE;
    if (!idle && !by_us)
        sampler->pause_until_ms = clock_mono_ms() + sampler->limits.pause;
    close_streams(sampler);
    tell(sampler);
}

/* One answer at the front of the bytes. false: it is not complete. */
static bool take_answer(struct gpu_sampler *sampler)
{
    const uint8_t *body;
    size_t length;
    int there = piped_message_next(&sampler->bytes, ANSWER_MAX, &body, &length);
    if (there == 0)
        return false;
    Hvdrun__GpuUsages *message = there > 0 ? hvdrun__gpu_usages__unpack(NULL, length, body) : NULL;
    if (message == NULL) {
        give_up(sampler);
        return false;
    }
    if (sampler->last != NULL)
        hvdrun__gpu_usages__free_unpacked(sampler->last, NULL);
    sampler->last = message;
    sampler->last_ms = clock_mono_ms();
    sampler->asked = false;
    loop_timer_set(sampler->watch, sampler->limits.idle);
    buf_consume(&sampler->bytes, PIPED_HEADER + length);
    return true;
}

static void answer_ready(void *context, int what)
{
    struct gpu_sampler *sampler = context;
    char bytes[16384];
    (void)what;
    ssize_t got = fd_read(sampler->answer_fd, bytes, sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (got <= 0) {
        loop_fd_watch(sampler->readable, 0); /* its exit comes too */
        return;
    }
    if (buf_append(&sampler->bytes, bytes, (size_t)got) < 0)
        give_up(sampler);
    else if (take_answer(sampler))
        tell(sampler);
}

static int start(struct gpu_sampler *sampler)
{
    int ask[2] AUTO_FD_PAIR = {-1, -1}, answer[2] AUTO_FD_PAIR = {-1, -1};
    int null_fd AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    char *const argv[] = {(char *)"hvdrun-agent", (char *)GPU_HELPER_WORD, NULL};
    if (null_fd < 0 || fd_pipe(ask) < 0 || fd_pipe(answer) < 0)
        return -1;
    const struct child_spec child = {
        .path = sampler->program, .argv = argv, .fds = {ask[0], answer[1], null_fd}, .keep_fd = -1};
    pid_t pid = helpers_start(sampler->helpers, &child, helper_exited, sampler, NULL);
    if (pid < 0)
        return -1;
    sampler->pid = pid;
    sampler->ask_fd = ask[1];
    sampler->answer_fd = answer[0];
    ask[1] = answer[0] = -1;
    fd_nonblock(sampler->ask_fd);
    fd_nonblock(sampler->answer_fd);
    sampler->readable = loop_fd_create(sampler->loop, sampler->answer_fd, answer_ready, sampler);
    loop_fd_watch(sampler->readable, LOOP_READ);
    return 0;
}

/* false: no answer will come. */
static bool ask_helper(struct gpu_sampler *sampler)
{
    if (sampler->asked)
        return true;
    bool paused = sampler->none || clock_mono_ms() < sampler->pause_until_ms;
    if (sampler->ask_fd < 0 && (sampler->pid > 0 || paused))
        return false;
    if (sampler->ask_fd < 0 && start(sampler) < 0) {
        sampler->pause_until_ms = clock_mono_ms() + sampler->limits.pause;
        return false;
    }
    if (fd_write(sampler->ask_fd, "?", 1) != 1)
        return false;
    sampler->asked = true;
    loop_timer_set(sampler->watch, sampler->limits.sick);
    return true;
}

static bool waits(const struct gpu_sampler *sampler, const void *context)
{
    for (size_t i = 0; i < sampler->asker_count; i++) {
        if (sampler->askers[i].context == context)
            return true;
    }
    return false;
}

void gpu_sampler_ask(struct gpu_sampler *sampler,
                     void (*done)(void *context, const Hvdrun__GpuUsages *gpus), void *context)
{
    if (waits(sampler, context))
        return;
    if (sampler->asker_count == ASKERS_MAX || !ask_helper(sampler)) {
        done(context, NULL);
        return;
    }
    sampler->askers[sampler->asker_count++] = (struct asker){done, context};
    if (!loop_timer_is_set(sampler->wait))
        loop_timer_set(sampler->wait, sampler->limits.wait);
}

struct owner_list {
    struct gpu_owner *items;
    size_t count;
};

static void add_process(struct owner_list *list, uint32_t seat, uint32_t gpu,
                        const Hvdrun__GpuProcess *process)
{
    struct gpu_owner *owner = NULL;
    for (size_t i = 0; i < list->count && owner == NULL; i++) {
        if (list->items[i].seat == seat && list->items[i].gpu == gpu)
            owner = &list->items[i];
    }
    if (owner == NULL) {
        owner = &MEM_ADD(list->items, list->count);
        *owner = (struct gpu_owner){.seat = seat, .gpu = gpu};
    }
    owner->has_memory = owner->has_memory || process->has_memory;
    owner->memory_bytes += process->memory_bytes;
}

static int by_seat(const void *a, const void *b)
{
    const struct gpu_owner *first = a, *second = b;
    if (first->seat != second->seat)
        return first->seat < second->seat ? -1 : 1;
    return (first->gpu > second->gpu) - (first->gpu < second->gpu);
}

size_t gpu_owners_find(const struct crews *crews, const Hvdrun__GpuUsages *gpus,
                       struct gpu_owner **out)
{
    struct buf scratch AUTO_BUF = BUF_INIT(USAGE_TEXT_MAX);
    struct owner_list list = {.items = NULL};
    for (size_t i = 0; gpus != NULL && i < gpus->n_gpus; i++) {
        const Hvdrun__GpuUsage *gpu = gpus->gpus[i];
        for (size_t j = 0; j < gpu->n_processes; j++) {
            uint32_t seat;
            if (crews_seat_below(crews, (pid_t)gpu->processes[j]->pid, &scratch, &seat))
                add_process(&list, seat, (uint32_t)i, gpu->processes[j]);
        }
    }
    if (list.count > 1)
        qsort(list.items, list.count, sizeof(*list.items), by_seat);
    *out = list.items;
    return list.count;
}
