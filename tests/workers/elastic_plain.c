/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain program that can be started again: no rendezvous, only RANK, WORLD_SIZE, MASTER_ADDR and
 * MASTER_PORT, and a checkpoint.
 *
 *   elastic_plain [--steps N] [--step-ms M] [--checkpoint FILE] [--print-every K] [--deadline-ms D]
 *                 [--crash-at S | --hang-at S] [--crash-rank R|all] [--crash-epochs K]
 *                 [--exit-code C | --signal N] [--ignore-term]
 *
 * N steps (20) of M milliseconds (10) with a barrier of all ranks at the end of each, over real
 * connections (elastic_plain_circle.h). At the end of a step, rank 0 replaces FILE by "STEPS SUM\n"
 * before it lets the others go on. At the start, it reads FILE and sends the values to the others.
 * SUM depends on the number of steps alone, so the result of a disturbed run is that of an
 * undisturbed one. Without --checkpoint, nothing is saved.
 *
 * On stdout, one write per line:
 *   epoch E restart R rank r/size resumes at S      behind the first meeting; S steps are done
 *   epoch E restart R rank r/size step S            after step S = 1..N (every Kth with K)
 *   epoch E restart R rank r/size deadline TEXT     once, by every rank whose file
 *                                                   HVDRUN_DEADLINE_FILE exists: its first line
 *   epoch E restart R rank r/size stopped at S      SIGTERM
 *   final N SUM                                     rank 0, when all is done
 * E is HVDRUN_EPOCH (else R + 1), R is TORCHELASTIC_RESTART_COUNT (else 0).
 *
 * Faults happen before step S, to rank R (0) of the moment, in the epochs 1..K (1): --crash-at
 * exits with C (3) or by the signal N; --hang-at stops to answer, with its connections open, and
 * dies by SIGTERM as a program without a handler does.
 *
 * SIGTERM: the present step is finished (with its checkpoint), then exit 143; also when a peer has
 * gone meanwhile, and at once before the first step. --ignore-term ignores it.
 *
 * Exit 1: a peer has gone, or has not come within D milliseconds (60000). 70: what must never
 * happen, such as a peer of another epoch, two of one rank, or somebody else who writes the
 * checkpoint. 97: wrong use. The reason is on stderr.
 */
#include <fcntl.h>

#include "elastic_plain_circle.h"

struct training {
    struct circle circle;
    int64_t steps, step_ms, print_every;
    int64_t fault_at; /* -1: none */
    bool hangs, ignores_term;
    int exit_code, signal_number;
    const char *checkpoint, *deadline_file;
    bool deadline_told;
    int64_t step; /* done */
    uint64_t sum;
};

static volatile sig_atomic_t term;

static void on_term(int number)
{
    (void)number;
    term = 1;
}

static bool was_stopped(void)
{
    return term != 0;
}

__attribute__((format(printf, 2, 3))) static void tell(const struct training *training,
                                                       const char *format, ...)
{
    char line[512];
    const struct circle *circle = &training->circle;
    int length = snprintf(line, sizeof(line), "epoch %d restart %d rank %d/%d ", circle->epoch,
                          circle->restart, circle->rank, circle->size);
    va_list args;
    va_start(args, format);
    length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, args);
    va_end(args);
    if ((size_t)length > sizeof(line) - 2)
        length = (int)sizeof(line) - 2;
    line[length] = '\n';
    write_all(1, line, (size_t)length + 1);
}

/* ---- the work ---- */

static uint64_t next_sum(uint64_t sum, int64_t step)
{
    uint64_t mixed = (sum ^ (uint64_t)step) * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 29;
}

/* False: there is none yet. */
static bool read_checkpoint(const struct training *training, int64_t *step, uint64_t *sum)
{
    char text[64];
    const int fd = open(training->checkpoint, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return false;
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    char *end = text;
    *step = strtoll(text, &end, 10);
    *sum = strtoull(end, &end, 16);
    if (length <= 0 || *end != '\n')
        circle_fail(&training->circle, WRONG, "the checkpoint %s is damaged", training->checkpoint);
    return true;
}

/* Replaces it, unless somebody else has done so since we looked. */
static void write_checkpoint(const struct training *training, int64_t step, uint64_t sum)
{
    int64_t there = 0;
    uint64_t there_sum = 0;
    if (training->checkpoint == NULL)
        return;
    read_checkpoint(training, &there, &there_sum);
    if (there != training->step)
        circle_fail(&training->circle, WRONG, "somebody else writes %s: %lld steps, not %lld",
                    training->checkpoint, (long long)there, (long long)training->step);
    char draft[4096];
    snprintf(draft, sizeof(draft), "%s.draft", training->checkpoint);
    const int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        circle_fail(&training->circle, 97, "cannot write %s: %s", draft, strerror(errno));
    dprintf(fd, "%lld %016llx\n", (long long)step, (unsigned long long)sum);
    close(fd);
    if (rename(draft, training->checkpoint) != 0)
        circle_fail(&training->circle, 97, "cannot replace %s: %s", training->checkpoint,
                    strerror(errno));
}

/* The agent replaces the file as a whole, so it is never half there. */
static void look_at_deadline(struct training *training)
{
    if (training->deadline_told || training->deadline_file == NULL)
        return;
    char text[128];
    const int fd = open(training->deadline_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    tell(training, "deadline %s", text);
    training->deadline_told = true;
}

static void fail_on_purpose(const struct training *training)
{
    if (training->hangs && !training->ignores_term)
        signal(SIGTERM, SIG_DFL);
    if (training->hangs)
        wait_for_ever();
    if (training->signal_number != 0) {
        signal(training->signal_number, SIG_DFL);
        raise(training->signal_number);
    }
    _exit(training->exit_code);
}

static void one_step(struct training *training)
{
    const int64_t step = training->step + 1;
    const uint64_t sum = next_sum(training->sum, step);
    if (step == training->fault_at)
        fail_on_purpose(training);
    pause_ms(training->step_ms);
    if (training->circle.rank != 0) {
        circle_follow(&training->circle, step, sum);
    } else {
        if (training->circle.size > 1)
            circle_collect(&training->circle, step);
        write_checkpoint(training, step, sum);
        circle_release(&training->circle, step, sum);
    }
    training->step = step;
    training->sum = sum;
    if (step % training->print_every == 0 || step == training->steps)
        tell(training, "step %lld", (long long)step);
    look_at_deadline(training);
}

/* ---- what is asked for ---- */

static bool is_at_fault(int argc, char **argv, const struct circle *circle)
{
    const char *who = option(argc, argv, "--crash-rank", "0");
    return (strcmp(who, "all") == 0 || to_number(who) == circle->rank) &&
           circle->epoch <= to_number(option(argc, argv, "--crash-epochs", "1"));
}

static void read_options(struct training *training, int argc, char **argv)
{
    struct circle *circle = &training->circle;
    circle->rank = env_int("RANK", 0);
    circle->size = env_int("WORLD_SIZE", 1);
    circle->restart = env_int("TORCHELASTIC_RESTART_COUNT", 0);
    circle->epoch = env_int("HVDRUN_EPOCH", circle->restart + 1);
    circle->deadline_ms = to_number(option(argc, argv, "--deadline-ms", "60000"));
    circle->stopped = was_stopped;
    training->steps = to_number(option(argc, argv, "--steps", "20"));
    training->step_ms = to_number(option(argc, argv, "--step-ms", "10"));
    training->print_every = to_number(option(argc, argv, "--print-every", "1"));
    training->checkpoint = option(argc, argv, "--checkpoint", NULL);
    training->deadline_file = getenv("HVDRUN_DEADLINE_FILE");
    const char *crash = option(argc, argv, "--crash-at", NULL);
    const char *hang = option(argc, argv, "--hang-at", NULL);
    training->hangs = hang != NULL;
    training->fault_at = -1;
    if ((hang != NULL || crash != NULL) && is_at_fault(argc, argv, circle))
        training->fault_at = to_number(hang != NULL ? hang : crash);
    training->exit_code = (int)to_number(option(argc, argv, "--exit-code", "3"));
    training->signal_number = (int)to_number(option(argc, argv, "--signal", "0"));
    if (circle->size < 1 || circle->rank < 0 || circle->rank >= circle->size ||
        training->print_every < 1)
        circle_fail(circle, 97, "wrong RANK, WORLD_SIZE or --print-every");
}

int main(int argc, char **argv)
{
    struct training training = {.step = 0};
    training.ignores_term = flag(argc, argv, "--ignore-term");
    /* no SA_RESTART: what waits for the first meeting looks at it */
    const struct sigaction action = {.sa_handler = training.ignores_term ? SIG_IGN : on_term};
    sigaction(SIGTERM, &action, NULL);
    read_options(&training, argc, argv);
    if (training.circle.rank == 0 && training.checkpoint != NULL)
        read_checkpoint(&training, &training.step, &training.sum);
    circle_open(&training.circle, &training.step, &training.sum);
    tell(&training, "resumes at %lld", (long long)training.step);
    while (training.step < training.steps && !was_stopped())
        one_step(&training);
    if (training.step < training.steps) {
        tell(&training, "stopped at %lld", (long long)training.step);
        return STOPPED;
    }
    if (training.circle.rank == 0)
        dprintf(1, "final %lld %016llx\n", (long long)training.step,
                (unsigned long long)training.sum);
    return 0;
}
