/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/reach/ways.h"
#include "model/allocation/allocation.h"

struct rig {
    struct settings settings;
    struct allocation allocation;
    struct job_request request;
    struct job job;
};

static struct rig make(enum set_transport transport)
{
    return (struct rig){.settings = {.transport = transport}};
}

static enum way choose(struct rig *rig, bool in_slurm, struct host_traits traits)
{
    rig->allocation.kind = ALLOCATION_SLURM;
    rig->request.allocation = in_slurm ? &rig->allocation : NULL;
    rig->job.settings = &rig->settings;
    rig->job.request = &rig->request;
    return way_choose(&rig->job, &traits);
}

static void test_the_entry_goes_first(void **state)
{
    (void)state;
    struct rig rig = make(SET_TRANSPORT_KUBECTL);
    rig.settings.launch_agent = (char *)"rsh";
    assert_int_equal(choose(&rig, true, (struct host_traits){.transport = SET_TRANSPORT_DOCKER}),
                     WAY_DOCKER);
    assert_int_equal(choose(&rig, true, (struct host_traits){.transport = SET_TRANSPORT_AUTO}),
                     WAY_COMMAND);
    rig.settings.launch_agent = NULL;
    assert_int_equal(choose(&rig, true, (struct host_traits){.transport = SET_TRANSPORT_AUTO}),
                     WAY_KUBECTL);
}

static void test_srun_is_for_plain_entries(void **state)
{
    (void)state;
    struct rig rig = make(SET_TRANSPORT_AUTO);
    const struct host_traits plain = {.transport = SET_TRANSPORT_AUTO};
    assert_int_equal(choose(&rig, true, plain), WAY_SRUN);
    assert_int_equal(choose(&rig, false, plain), WAY_SSH);
    struct host_traits traits[] = {{.user = (char *)"u"},
                                   {.port = 2222},
                                   {.address = (char *)"10.0.0.1"},
                                   {.identity = (char *)"key"}};
    for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
        traits[i].transport = SET_TRANSPORT_AUTO;
        assert_int_equal(choose(&rig, true, traits[i]), WAY_SSH);
    }
    rig.settings.transport = SET_TRANSPORT_SRUN;
    assert_int_equal(choose(&rig, false, traits[0]), WAY_SRUN);
}

static void test_here(void **state)
{
    (void)state;
    struct rig rig = make(SET_TRANSPORT_AUTO);
    const struct host_traits plain = {.transport = SET_TRANSPORT_AUTO};
    const struct host_traits local = {.transport = SET_TRANSPORT_LOCAL};
    const struct host_traits ported = {.transport = SET_TRANSPORT_AUTO, .port = 22};
    struct allocation slurm = {.kind = ALLOCATION_SLURM, .here = (char *)"node7"};
    assert_true(way_is_here(&rig.settings, NULL, "localhost", &plain));
    assert_false(way_is_here(&rig.settings, NULL, "localhost", &ported));
    assert_false(way_is_here(&rig.settings, NULL, "node7", &plain));
    assert_true(way_is_here(&rig.settings, &slurm, "node7", &plain));
    assert_false(way_is_here(&rig.settings, &slurm, "node8", &plain));
    assert_true(way_is_here(&rig.settings, NULL, "anything", &local));
    rig.settings.transport = SET_TRANSPORT_SSH;
    assert_false(way_is_here(&rig.settings, &slurm, "node7", &plain));
    assert_true(way_is_here(&rig.settings, NULL, "anything", &local));
    rig.settings.transport = SET_TRANSPORT_AUTO;
    rig.settings.launch_agent = (char *)"rsh";
    assert_false(way_is_here(&rig.settings, NULL, "localhost", &plain));
}

/* Who dials in is not here, but the driver's own host needs no agent that does. */
static void test_dial(void **state)
{
    (void)state;
    struct rig rig = make(SET_TRANSPORT_DIAL);
    const struct host_traits plain = {.transport = SET_TRANSPORT_AUTO};
    const struct host_traits dial = {.transport = SET_TRANSPORT_DIAL};
    assert_int_equal(choose(&rig, true, plain), WAY_DIAL);
    assert_true(way_is_here(&rig.settings, NULL, "localhost", &plain));
    assert_false(way_is_here(&rig.settings, NULL, "pod-1", &plain));
    assert_false(way_may_be_here(&rig.settings, WAY_DIAL, "pod-1", &plain));
    const struct host_traits came = {.transport = SET_TRANSPORT_AUTO, .came = true};
    assert_false(way_is_here(&rig.settings, NULL, "localhost", &came));
    rig.settings.transport = SET_TRANSPORT_AUTO;
    assert_int_equal(choose(&rig, true, dial), WAY_DIAL);
    assert_true(way_is_here(&rig.settings, NULL, "localhost", &dial));
    assert_false(way_is_here(&rig.settings, NULL, "pod-1", &dial));
}

static void test_a_resolver_tells(void **state)
{
    (void)state;
    struct rig rig = make(SET_TRANSPORT_AUTO);
    const struct host_traits plain = {.transport = SET_TRANSPORT_AUTO};
    const struct host_traits ssh = {.transport = SET_TRANSPORT_SSH};
    const struct host_traits other = {.transport = SET_TRANSPORT_AUTO, .user = (char *)"u"};
    assert_true(way_may_be_here(&rig.settings, WAY_SSH, "node7", &plain));
    assert_false(way_may_be_here(&rig.settings, WAY_SSH, "localhost", &plain));
    assert_false(way_may_be_here(&rig.settings, WAY_SSH, "node7", &ssh));
    assert_false(way_may_be_here(&rig.settings, WAY_SSH, "node7", &other));
    assert_false(way_may_be_here(&rig.settings, WAY_SRUN, "node7", &plain));
    rig.settings.transport = SET_TRANSPORT_SSH;
    assert_false(way_may_be_here(&rig.settings, WAY_SSH, "node7", &plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_entry_goes_first),
        cmocka_unit_test(test_srun_is_for_plain_entries),
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_dial),
        cmocka_unit_test(test_a_resolver_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
