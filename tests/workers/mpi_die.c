/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_die WHEN RANK [HOW]: that rank dies. WHEN: `before` MPI_Init, `in` it (a moment after it was
 * called, from an alarm, with the others waiting inside), `after` it, `alone` (after it, and the
 * next rank never calls MPI again), or `late` (after MPI_Finalize). HOW: an exit code (default 3),
 * or `kill` (SIGKILL) or `segv`.
 *
 * The launcher says which rank we are before MPI does, so that rank is read from the environment.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const char *how = "3";

static void die(void)
{
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "segv") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    _exit((int)strtol(how, NULL, 10));
}

static void on_alarm(int number)
{
    (void)number;
    die();
}

static int rank_from_environment(void)
{
    static const char *const names[] = {"HOROVOD_RANK", "RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]) != NULL)
            return (int)strtol(getenv(names[i]), NULL, 10);
    return -1;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: mpi_die before|in|after|alone|late RANK [CODE|kill|segv]\n");
        return 2;
    }
    const char *when = argv[1];
    int mine = rank_from_environment() == (int)strtol(argv[2], NULL, 10);
    if (argc > 3)
        how = argv[3];
    if (mine && strcmp(when, "before") == 0)
        die();
    if (mine && strcmp(when, "in") == 0) {
        struct itimerval soon = {.it_value = {.tv_usec = 3000}};
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    MPI_Init(&argc, &argv);
    if (mine && strcmp(when, "in") == 0)
        die(); /* it was faster than the alarm */
    if (mine && (strcmp(when, "after") == 0 || strcmp(when, "alone") == 0))
        die();
    if (strcmp(when, "alone") == 0 && rank_from_environment() == (int)strtol(argv[2], NULL, 10) + 1)
        pause();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (mine && strcmp(when, "late") == 0)
        die();
    return 0;
}
