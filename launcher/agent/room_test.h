/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this room need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "wire/control.pb-c.h"

struct agent_config;
struct crew_apps;
struct crew_gpus;
struct device_list;
struct ending;
struct node_facts;
struct post;
struct topology;

/* agent.c */

/* `helpers`, `post` and `facts` are borrowed; facts->gpus becomes what was found. */
struct hello *hello_create(struct loop *loop, struct helpers *helpers, const struct post *post,
                           struct node_facts *facts, const struct agent_config *config);
void hello_destroy(struct hello *hello); /* accepts NULL */

/* Takes the descriptor. `lost` is called once, from the loop, when the keeper is gone. NULL when
 * `fd` is -1: there is no keeper. */
struct keeper_line *keeper_line_create(struct loop *loop, int fd, void (*lost)(void *context),
                                       void *context);

/* The agent is about to end. SIGCONT goes to the keeper: one that was stopped must end with its
 * agent, and nobody else on its host would let it go on. Accepts NULL. */
void keeper_line_destroy(struct keeper_line *line);

/* crew_apps.c */

/* Completes the error of child_find() for `program`, which a worker in folder `wdir` (NULL: where
 * we are) would execute. A script that nobody made executable: chmod +x, or its interpreter in
 * front of it. Other errors stay as they are. */
void program_advice(const char *program, const char *wdir, struct error *err);

/* crew_binding.c */

/* NULL when PREPARE asks for nothing about GPUs. `told`: how many
 * nvidia-smi counts, for a host where nothing else lists them. `topology`: of a simulated machine,
 * whose devices are taken; else NULL. `prepare` and `apps` are borrowed. */
struct crew_gpus *crew_gpus_create(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                                   int told, struct topology *topology);
void crew_gpus_destroy(struct crew_gpus *gpus); /* accepts NULL */

/* -1 and STATUS_NO_SLOTS when --gpus-per-proc asks for more than there are. */
int crew_gpus_check(const struct crew_gpus *gpus, int slots, struct error *err);

/* Those that the workers see, in their order. Borrowed. */
const struct device_list *crew_gpus_seen(const struct crew_gpus *gpus);

/* The numbers of those that the worker in `slot` has or is near, "2,3"; NULL: none. The caller owns
 * it. */
char *crew_gpus_of(const struct crew_gpus *gpus, size_t slot);

/* departure.c */

struct preempt;

/* `words` are copied; there is at least one, and the first is searched along PATH. The first probe
 * runs at once. `notice` is called from the loop: once, or twice when the deadline became known
 * later. `why` (borrowed for the call, never empty) is one line. `notice` may destroy the probe.
 * `loop`, `helpers` and `log` are borrowed. */
struct preempt *preempt_create(struct loop *loop, struct helpers *helpers, char *const *words,
                               size_t count, int64_t period_ms, const struct log *log,
                               void (*notice)(void *context, bool has_deadline, int64_t within_ms,
                                              const char *why),
                               void *context);
void preempt_destroy(struct preempt *preempt); /* kills one that runs; accepts NULL */

/* Another limit than PREEMPT_LIMIT_MS, from the next run on. */
void preempt_set_limit(struct preempt *preempt, int64_t limit_ms);

/* ending.c */

/* What gone() gets after SIGKILL; nothing: there is none. */
void ending_describe_held(const struct ending *ending, struct buf *out);
