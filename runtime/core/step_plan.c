/* SPDX-License-Identifier: Apache-2.0 */
#include "core/step_plan.h"

#include <stdlib.h>

#include "base/mem.h"

enum { REPEATS_NEEDED = 2 };

void step_plan_destroy(struct step_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        bits_destroy(&plan->groups[i]);
    free(plan->groups);
    bits_destroy(&plan->all);
    *plan = (struct step_plan){0};
}

void step_plan_add(struct step_plan *plan, const struct bits *group)
{
    if (plan->count == plan->room) {
        plan->room = 2 * plan->room + 8;
        plan->groups = mem_resize_array(plan->groups, plan->room, sizeof *plan->groups);
    }
    plan->groups[plan->count] = (struct bits){0};
    bits_copy(&plan->groups[plan->count++], group);
    bits_add(&plan->all, group);
}

const struct bits *step_plan_group(const struct step_plan *plan, size_t id)
{
    for (size_t i = 0; i < plan->count && bits_test(&plan->all, id); i++)
        if (bits_test(&plan->groups[i], id))
            return &plan->groups[i];
    return NULL;
}

void learner_destroy(struct learner *learner)
{
    step_plan_destroy(&learner->step);
    bits_destroy(&learner->previous);
    learner->repeats = 0;
}

void learner_forget(struct learner *learner)
{
    learner_destroy(learner);
}

static size_t join(const struct learner *learner, struct step_plan *plan)
{
    for (size_t i = 0; i < learner->step.count; i++)
        step_plan_add(plan, &learner->step.groups[i]);
    return learner->step.count;
}

size_t learner_run(struct learner *learner, const struct bits *group, struct step_plan *plan)
{
    if (bits_meet(&plan->all, group))
        return 0;
    if (bits_meet(&learner->step.all, group)) { /* the next step begins */
        bool same = bits_equal(&learner->step.all, &learner->previous);
        learner->repeats = same ? learner->repeats + 1 : 0;
        if (learner->repeats >= REPEATS_NEEDED) {
            size_t learned = join(learner, plan);
            learner_forget(learner);
            return learned;
        }
        bits_copy(&learner->previous, &learner->step.all);
        step_plan_destroy(&learner->step);
    }
    step_plan_add(&learner->step, group);
    return 0;
}
