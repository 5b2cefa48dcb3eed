/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a schedule: world.c has the hosts and ranks, driver.c is the driver. Times are
 * nanoseconds of the true time, which is also the driver's own clock.
 */
#pragma once

#include "model/exit/policy.h"
#include "model/exit/root_cause.h"
#include "sim/rng.h"
#include "simfail/agenda.h"
#include "simfail/world.h"

#define PLACES_MAX 4
#define RANKS_MAX 12
#define NEWS_MAX 2048
#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define NEVER INT64_MAX

struct place {
    int64_t skew_ns, uncertainty_ns; /* of its clock, as the driver converts it */
    int64_t link_ns;                 /* when the last news of it arrives */
    int64_t stamp_ns;                /* the last time that its agent wrote down, by its clock */
    int64_t reap_ns;        /* when it sees the last end of a rank: it sees them in order */
    int64_t dead_ns;        /* of the agent; NEVER */
    int64_t stopped_ns;     /* NEVER */
    bool silent;            /* nobody is told of its death */
    bool killing;           /* its agent ends the ranks */
    bool succeeded, failed; /* a rank has, as its agent knows */
};

struct rank {
    int host;
    bool ended, reaped, failing; /* failing: it has noticed that a peer has gone */
    bool signaled;
    int code;
    bool blames;         /* it has written that a peer has gone */
    int64_t waitable_ns; /* its connections have ended before that */
    int64_t ending_ns;   /* its agent saw then that it was ending; 0: it did not */
    char text[200];      /* that it has written, and its agent has not read */
};

/* The true cause. */
struct truth {
    enum reason reason;
    int rank, host; /* rank -1: the host is lost */
    int code;       /* with which the rank exits */
    bool began;
    int64_t begin_ns;
    int64_t stay_ns;    /* LEAVE: from then until the process ends */
    int64_t end_ns;     /* the rank ends, or the host is lost; NEVER: not yet */
    bool names;         /* peers say which rank has left */
    const char *blames; /* what peers write; NULL: nothing */
};

enum news_kind { NEWS_BEAT, NEWS_OUTPUT, NEWS_EXITED, NEWS_FINISHED, NEWS_KILLING, NEWS_CLOSED };

struct news {
    enum news_kind kind;
    int host, rank;
    int64_t stamp_ns, ending_ns;
    bool signaled;
    int code;
    char text[200];
};

struct record {
    bool exited, finished, by_us;
    struct exit_event event;
    struct tail tail;
};

struct driver {
    struct plan *plan;
    struct exit_outside outside;
    struct exit_policy *policy;
    struct record ranks[RANKS_MAX];
    struct {
        int64_t alive_ns, heard_ns, killed_ns, lost_ns;
        bool lost;
    } hosts[PLACES_MAX];
    int64_t timeout_ns;
    bool ending;
    int first;    /* the rank whose cause it waits for; -1 */
    bool is_sure; /* that rank blames a peer */
    int waits;    /* so far: an old timer does not count */
    struct verdict verdict;
    struct root_cause cause;
};

struct world {
    struct rng rng;
    enum lie lie;
    bool tell;
    int64_t now_ns;
    struct agenda agenda;
    struct place hosts[PLACES_MAX];
    struct rank ranks[RANKS_MAX];
    int host_count, rank_count;
    int64_t stall_ns, stall_end_ns; /* the driver stands still */
    struct truth truths[2];
    int truth_count;
    bool handled; /* a rank has written an error, and gone on */
    struct driver driver;
    int news_count;
    struct news news[NEWS_MAX];
};

/* From `low` to `high`, small ones as often as great ones. */
int64_t world_slow(struct world *world, int64_t low, int64_t high);

void driver_open(struct world *world);
void driver_close(struct world *world);
void driver_news(struct world *world, const struct news *news);
void driver_silent(struct world *world); /* who has been silent for too long is lost */
void driver_waited(struct world *world, int wait);
void driver_limit(struct world *world);
bool driver_is_over(const struct world *world);
void driver_judge(struct world *world, struct outcome *out);
