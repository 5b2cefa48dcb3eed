/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of an elastic job: the state of each, its slots, and its record of failures. Pure facts
 * and their rules; other files decide which host is called and which is drained.
 *
 * A host keeps its number for the whole job. Only elastic_hosts_move() changes the state of a host;
 * it allows the steps of the table in model/elastic/types.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/elastic/types.h"

#define ELASTIC_FOR_GOOD INT64_MAX

/*
 * The record of failures of a slot or a host. Failures add up and are forgotten after a while. At
 * the limit the slot or host belongs on the blacklist, for a cooldown that doubles each time. Pure.
 */

struct elastic_record { /* all zero: no failure */
    int failures;
    int times; /* how often it was blacklisted */
    int64_t last_ms;
    int64_t blacklisted_until_ms; /* 0: it is not; ELASTIC_FOR_GOOD */
};

/* True: the limit is reached. The caller decides whether to blacklist the slot or host. */
bool elastic_record_failure(struct elastic_record *record, const struct elastic_config *config,
                            int64_t now_ms);

#define ELASTIC_SLOW_CALL_MS 5000 /* a longer call does not keep the core from calling others */
#define ELASTIC_STABLE_MS 60000   /* after so long up, the reconnect back-off begins anew */

struct elastic_host {
    enum elastic_host_state state;
    bool listed;
    bool drained;          /* by request; an unlisted host leaves without it */
    bool relisted;         /* it was unlisted and listed again while it was draining */
    bool unseen;           /* listed anew, and not up since: it may be another machine */
    bool expired;          /* its drain deadline has passed, and the core has ended its workers */
    bool prepare_failed;   /* an epoch could not be prepared there, so it is blacklisted */
    bool has_hung;         /* a hang counted as a failure: most likely of the program */
    bool has_crashes;      /* the program has crashed there at crashed_ms */
    int slots;             /* as listed */
    int blacklisted_slots; /* of them */
    int place;             /* among the hosts of the job, kept when it leaves; -1: never had one */
    int next_place;        /* in the latest plan */
    bool holds_place;      /* it has members in the epoch that was started last */
    struct elastic_record record;
    struct elastic_record *slot_records; /* of slots below slot_room; NULL: no failure */
    int slot_room;
    char *boot_id;      /* owned; NULL: not known */
    char *drain_reason; /* owned; NULL: none given */
    char *problem;      /* owned: why it was last unreachable or lost; NULL: it was not */
    int64_t crashed_ms, came_ms, drain_deadline_ms; /* the last: -1 not known */
    int64_t delay_ms, call_due_ms;                  /* of the next call after a loss */
    int64_t called_ms;                              /* when the last call began */
    unsigned seen;                                  /* serial of the last listing with it */
    uint32_t prepared_epoch;  /* the last one that its agent was asked to prepare */
    uint32_t member_epoch;    /* the last one that ran there */
    uint32_t newcomers_epoch; /* of the last newcomers that its agent was asked to prepare; 0: none,
                                 or they have failed */
    /* kept by elastic_workers */
    int first_seat;           /* -1: none */
    int seats, live, staying; /* taken; not EXITED; STARTING, RUNNING, ASKED or HELD */
    int newcomers;            /* JOINING, READY or DISMISSED */
};

struct elastic_hosts {
    struct host_list names; /* position = number; slots, user, port, address as last listed */
    struct elastic_host *items;
    int count;
    size_t room;
    int in_state[ELASTIC_HOST_STATES];
    int64_t due_ms; /* not after the next due time of any host; INT64_MAX: none */
};

void elastic_hosts_destroy(struct elastic_hosts *hosts);

int elastic_hosts_number(const struct elastic_hosts *hosts, const char *name); /* -1: unknown */
/* Finds or makes the host of this name, copies how it is reached, and returns its number. */
int elastic_hosts_enter(struct elastic_hosts *hosts, const struct host *entry);
struct elastic_host *elastic_hosts_at(const struct elastic_hosts *hosts, int number); /* or NULL */

void elastic_hosts_move(struct elastic_hosts *hosts, int number, enum elastic_host_state to);

/* How many workers the host may have now: 0 unless it is up, listed, not drained and not
 * blacklisted. */
int elastic_hosts_usable(const struct elastic_host *host);
/* The same once a call to it has succeeded. */
int elastic_hosts_promised(const struct elastic_host *host);
bool elastic_hosts_slot_usable(const struct elastic_host *host, int slot);
bool elastic_hosts_blacklisted(const struct elastic_host *host);

void elastic_hosts_set_slots(struct elastic_host *host, int slots);
/* The program has crashed there. True: the slot has reached the limit. */
bool elastic_hosts_slot_failed(struct elastic_host *host, int slot,
                               const struct elastic_config *config, int64_t now_ms);
/* The last crash was not the program's fault: it does not count. */
void elastic_hosts_slot_excused(struct elastic_host *host, int slot,
                                const struct elastic_config *config, int64_t now_ms);
/* `slot` -1: the whole host. */
void elastic_hosts_blacklist(struct elastic_hosts *hosts, int number, int slot,
                             const struct elastic_config *config, int64_t now_ms);
bool elastic_hosts_has_crashed(const struct elastic_host *host, const struct elastic_config *config,
                               int64_t now_ms);
/* Another machine has this name now: forgets failures, blacklist and drain. */
void elastic_hosts_clear_records(struct elastic_host *host);
/* Ends the cooldowns that are over, of the host and of its slots. True: there was one. */
bool elastic_hosts_end_cooldowns(struct elastic_host *host, int64_t now_ms);

/* Sets when a host that is AWAY is called again. */
void elastic_hosts_back_off(struct elastic_hosts *hosts, int number, int64_t min_ms, int64_t max_ms,
                            int64_t now_ms);
/* By request, until `deadline_ms`. -1: not known, which leaves an earlier deadline as it is.
 * `reason` may be NULL. */
void elastic_hosts_drain(struct elastic_hosts *hosts, int number, const char *reason,
                         int64_t deadline_ms);
void elastic_hosts_undrain(struct elastic_host *host);
void elastic_hosts_called(struct elastic_hosts *hosts, int number, int64_t now_ms);
/* Sets due_ms from all hosts. */
void elastic_hosts_find_due(struct elastic_hosts *hosts, int64_t now_ms);
