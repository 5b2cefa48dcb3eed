/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of an elastic job: which there are, how each one stands, what is held against it. Pure
 * facts and their rules; who is called and who leaves is decided by others.
 *
 * A number is a host's for the whole job. elastic_hosts_move() is the only way to another state and
 * knows the table of model/elastic/types.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/elastic/strikes.h"
#include "model/elastic/types.h"

#define ELASTIC_SLOW_CALL_MS 5000 /* a call that takes longer is not relied on any more */
#define ELASTIC_STABLE_MS 60000   /* up so long, a host's reconnect back-off begins anew */

struct elastic_host {
    enum elastic_host_state state;
    bool listed;
    bool drained;        /* by request; an unlisted host leaves too */
    bool relisted;       /* it was unlisted and listed again while it was leaving */
    bool unseen;         /* listed anew, and not up since: it may be another machine */
    bool expired;        /* its drain deadline has passed, and its workers were ended for it */
    bool prepare_failed; /* an epoch could not be prepared there, and it is put aside for that */
    bool has_crashes;    /* the program has crashed there at crashed_ms */
    int slots;           /* as listed */
    int put_aside;       /* of them */
    int place;           /* among the hosts of the job, kept when it leaves; -1: never had one */
    int next_place;      /* in the latest plan */
    bool holds_place;    /* it has members in the epoch that was started last */
    struct elastic_strikes strikes;
    struct elastic_strikes *slot_strikes; /* of slots below slot_room; NULL: none ever struck */
    int slot_room;
    char *boot_id;      /* owned; NULL: not known */
    char *drain_reason; /* owned; NULL: none given */
    char *problem;      /* owned: why it was not reached or lost last; NULL: nothing */
    int64_t crashed_ms, came_ms, drain_deadline_ms; /* the last: -1 not known */
    int64_t delay_ms, call_due_ms;                  /* of the next call after a loss */
    int64_t called_ms;                              /* when the last call began */
    unsigned seen;                                  /* serial of the last listing with it */
    uint32_t prepared_epoch;                        /* the last one that it was asked to prepare */
    uint32_t member_epoch;                          /* the last one that ran there */
    /* kept by elastic_workers */
    int first_seat;           /* -1: none */
    int seats, live, staying; /* taken; not EXITED; STARTING, RUNNING or ASKED */
};

struct elastic_hosts {
    struct host_list names; /* position = number; slots, user, port, address as last listed */
    struct elastic_host *items;
    int count, room;
    int in_state[ELASTIC_HOST_STATES];
    int64_t due_ms; /* not after the next due time of any host; INT64_MAX: none */
};

void elastic_hosts_destroy(struct elastic_hosts *hosts);

int elastic_hosts_number(const struct elastic_hosts *hosts, const char *name); /* -1: unknown */
/* Finds or makes the host of this name, and takes over how it is reached. Its number. */
int elastic_hosts_enter(struct elastic_hosts *hosts, const struct host *entry);
struct elastic_host *elastic_hosts_at(const struct elastic_hosts *hosts, int number); /* or NULL */
const char *elastic_hosts_name(const struct elastic_hosts *hosts, int number);

void elastic_hosts_move(struct elastic_hosts *hosts, int number, enum elastic_host_state to);

/* How many workers it may have now: 0 unless it is up and nothing is against it. */
int elastic_hosts_usable(const struct elastic_host *host);
/* The same of a host that is called or up: what it will give. */
int elastic_hosts_promised(const struct elastic_host *host);
bool elastic_hosts_slot_usable(const struct elastic_host *host, int slot);
bool elastic_hosts_blacklisted(const struct elastic_host *host);

void elastic_hosts_set_slots(struct elastic_host *host, int slots);
/* A crash there; true: the slot has reached the limit. */
bool elastic_hosts_strike_slot(struct elastic_host *host, int slot,
                               const struct elastic_strike_rule *rule, int64_t now_ms);
void elastic_hosts_slot_aside(struct elastic_hosts *hosts, int number, int slot,
                              const struct elastic_strike_rule *rule, int64_t now_ms);
void elastic_hosts_blacklist(struct elastic_hosts *hosts, int number,
                             const struct elastic_strike_rule *rule, int64_t now_ms);
bool elastic_hosts_has_crashed(const struct elastic_host *host,
                               const struct elastic_strike_rule *rule, int64_t now_ms);
/* Another machine has this name now: what was held against the host is forgotten. */
void elastic_hosts_forgive(struct elastic_host *host);
/* Cool-downs that are over, of it and of its slots. True: there was one. */
bool elastic_hosts_come_back(struct elastic_host *host, int64_t now_ms);

/* It is AWAY now: sets when it is called again. */
void elastic_hosts_back_off(struct elastic_hosts *hosts, int number, int64_t min_ms, int64_t max_ms,
                            int64_t now_ms);
/* By request, until `deadline_ms` (-1: not known; one that is known stays). `reason` may be NULL.
 */
void elastic_hosts_drain(struct elastic_hosts *hosts, int number, const char *reason,
                         int64_t deadline_ms);
void elastic_hosts_undrain(struct elastic_host *host);
void elastic_hosts_called(struct elastic_hosts *hosts, int number, int64_t now_ms);
/* Sets due_ms from all hosts. */
void elastic_hosts_find_due(struct elastic_hosts *hosts, int64_t now_ms);
