/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one rank shows, for hang.h: whether it makes progress, waits, or uses the processor at one
 * place. Pure.
 *
 * Some signs are certain. Others are numbers that a rank that waits has too, only smaller. Such a
 * number is compared with a rate three times: over the last sample, over the last HANG_SUM samples,
 * and over all the time since the rank has been quiet. So little by little counts as well.
 *
 * All main threads of a rank may sleep, and the rank hardly uses the processor. What happens then
 * is the work of a helper thread: a logger or a progress bar. The rank only *murmurs*.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rates that are progress; docs/hangs.md has them too. */
#define HANG_IO_BYTES 4096 /* at once, or at this rate: */
#define HANG_IO_PER_S 64
#define HANG_TCP_SHARE 16 /* so many bytes of TCP are one of these */
#define HANG_FAULTS_PER_S 16
#define HANG_FAULTS_MIN 64
#define HANG_RECEIVE_PER_MINUTE 6
#define HANG_RECEIVE_MIN 4
#define HANG_LOOKS 16
#define HANG_SUM 10 /* samples */

/* All numbers count from the start of the rank. */
struct hang_sample {
    uint64_t output;     /* bytes, but not of lines that only say that ranks wait (stall_lines.h) */
    uint64_t operations; /* completed by the library that it uses, and reports of progress */
    uint64_t io_bytes;   /* without its output */
    uint64_t tcp_data;   /* that came over TCP; 0: it is not known */
    uint64_t cpu_us, faults;
    uint64_t waits;      /* how often its main threads gave up the processor to wait */
    uint64_t main_ns;    /* for which they have used the processor; 0: unknown */
    uint64_t receivers;  /* a number that names those of them that wait for data now; 0: none */
    uint64_t receptions; /* `waits` of these */
    bool held;           /* by a debugger, or nobody reads its output */
    bool has_gpu;        /* the two are known */
    uint64_t gpu_power_mw;
    uint32_t gpu_memory_use; /* percent of the last second or less */
};

/* What a look at the stacks of a rank has shown. Places are numbers that stand for stacks. */
struct hang_look {
    uint64_t main; /* the main thread; 0: unknown */
    bool main_runs;
    bool
        waits_for_own; /* it waits in Python's own library, maybe for its own threads or children */
    uint64_t aside;    /* all other threads that run, together; 0: none */
    bool unknown;      /* one of those that run cannot be read */
};

/* All that the rank has done; each number only grows. */
struct hang_sums {
    int64_t ms;
    uint64_t io_bytes, aside_bytes; /* aside: while its main threads slept */
    uint64_t cpu_us, faults, waits, receptions, main_ns;
};

struct hang_rank {
    uint64_t worker; /* 0: none */
    bool sampled;
    struct hang_sample last;
    int64_t last_ms;
    int64_t quiet_ms;

    struct hang_sums sums, quiet_sums, past[HANG_SUM]; /* quiet: when this began */
    int past_count, past_next;

    bool busy;       /* it has used the processor in the last samples */
    int64_t idle_ms; /* since then */
    /* since it has been quiet */
    bool spins; /* it uses the processor, and only its stacks show whether it works */
    bool murmurs;
    int64_t murmured_ms;                 /* since it last did */
    bool strays;                         /* its main thread has stayed at two places */
    uint64_t place;                      /* of its main thread in the last look; 0: none */
    uint64_t stayed;                     /* where it has last stayed; 0: nowhere */
    uint64_t aside;                      /* what ran while its main thread waited */
    int looks, place_looks, aside_looks; /* place_looks: the last ones, which showed the same */
    bool aside_moves;
    bool missed; /* the last look could not show it */
};

/* `follows`: the sample before it is so recent that nothing is unknown between the two. */
void hang_rank_sample(struct hang_rank *rank, const struct hang_sample *sample, int64_t now_ms,
                      bool follows);
/* Long after the one before it: the time between them neither adds to the silence nor ends it. */
void hang_rank_sample_late(struct hang_rank *rank, const struct hang_sample *sample,
                           int64_t now_ms);
void hang_rank_look(struct hang_rank *rank, const struct hang_look *look);
void hang_rank_forget_looks(struct hang_rank *rank);
void hang_rank_moves(struct hang_rank *rank); /* it is quiet from now on */
/* Its murmurs were progress. */
void hang_rank_accept_murmurs(struct hang_rank *rank);

/* Whether only looks can tell that it does not work. */
bool hang_rank_needs_looks(const struct hang_rank *rank);
/* Whether a main thread of it has run since it has been quiet. */
bool hang_rank_is_awake(const struct hang_rank *rank);
