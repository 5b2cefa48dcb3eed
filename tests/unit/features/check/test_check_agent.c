/* SPDX-License-Identifier: Apache-2.0 */
/* A whole agent that is asked by `hvdrun check`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/fake_driver.h"
#include "unit.h"

static uint8_t token[16] = "fifteen letters";

static void test_facts(void **state)
{
    struct fake_driver driver;
    (void)state;
    unit_clock_stop(5, 6);
    fake_open(&driver);
    unit_clock_run();
    fake_ask(&driver, &topic_facts, 1, NULL);
    Hvdrun__Facts *facts = (Hvdrun__Facts *)fake_answer(&driver, &topic_facts, 1, 0, false);
    assert_int_equal(facts->mono_ns, 5);
    assert_int_equal(facts->wall_ns, 6);
    assert_int_equal(facts->n_folders, 2);
    assert_string_equal(facts->folders[0]->what, "tmp");
    assert_true(facts->folders[0]->total_bytes > 0);
    assert_string_equal(facts->limits[0]->name, "nofile");
    assert_true(facts->limits[0]->hard > 0);
    /* one or the other: what is installed is not the agent's doing */
    assert_true((facts->pmix[0] == '\0') == (facts->pmix_problem[0] != '\0'));
    assert_true((facts->hwloc[0] == '\0') == (facts->hwloc_problem[0] != '\0'));
    assert_string_not_equal(facts->kernel, "");
    hvdrun__facts__free_unpacked(facts, NULL);
    fake_quit(&driver);
}

static Hvdrun__Probed *answer(struct fake_driver *driver, uint32_t step)
{
    return (Hvdrun__Probed *)fake_answer(driver, &topic_probe, step, 0, false);
}

static uint32_t listen_on(struct fake_driver *driver, uint32_t step, const char *address,
                          size_t token_length, const char *problem)
{
    Hvdrun__Probe message = HVDRUN__PROBE__INIT;
    message.listen = (char *)address;
    message.token = (ProtobufCBinaryData){token_length, token};
    fake_ask(driver, &topic_probe, step, &message.base);
    Hvdrun__Probed *probed = answer(driver, step);
    uint32_t port = probed->port;
    if (strstr(probed->problem, problem) == NULL)
        fail_msg("'%s' is not in '%s'", problem, probed->problem);
    assert_true((port != 0) == (probed->problem[0] == '\0'));
    hvdrun__probed__free_unpacked(probed, NULL);
    return port;
}

/* To these ports of loopback, all at once. */
static Hvdrun__Probed *call(struct fake_driver *driver, uint32_t step, const uint32_t *ports,
                            size_t count, uint32_t transfer_ms)
{
    Hvdrun__Probe message = HVDRUN__PROBE__INIT;
    Hvdrun__ProbePeer peers[4], *pointers[4];
    for (size_t i = 0; i < count; i++) {
        peers[i] = (Hvdrun__ProbePeer)HVDRUN__PROBE_PEER__INIT;
        peers[i].node = 100 + (uint32_t)i;
        peers[i].address = (char *)"127.0.0.1";
        peers[i].port = ports[i];
        peers[i].token = (ProtobufCBinaryData){sizeof(token), token};
        pointers[i] = &peers[i];
    }
    message.peers = pointers;
    message.n_peers = count;
    message.limit_ms = 5000;
    message.transfer_ms = transfer_ms;
    fake_ask(driver, &topic_probe, step, &message.base);
    return answer(driver, step);
}

/* It reaches itself. */
static void test_probe(void **state)
{
    struct fake_driver driver;
    (void)state;
    fake_open(&driver);
    uint32_t port = listen_on(&driver, 1, "127.0.0.1", sizeof(token), "");
    Hvdrun__Probed *probed = call(&driver, 2, (uint32_t[]){port, 1, port}, 3, 0);
    assert_int_equal(probed->n_results, 3);
    assert_int_equal(probed->port, port);
    static const Hvdrun__ProbeOutcome wanted[] = {HVDRUN__PROBE_OUTCOME__PROBE_REACHED,
                                                  HVDRUN__PROBE_OUTCOME__PROBE_REFUSED,
                                                  HVDRUN__PROBE_OUTCOME__PROBE_REACHED};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(probed->results[i]->node, 100 + i);
        assert_int_equal(probed->results[i]->outcome, wanted[i]);
    }
    hvdrun__probed__free_unpacked(probed, NULL);
    probed = call(&driver, 3, &port, 1, 20);
    assert_true(probed->results[0]->bytes > 0);
    hvdrun__probed__free_unpacked(probed, NULL);
    probed = call(&driver, 4, NULL, 0, 0); /* nothing to do is done */
    assert_int_equal(probed->n_results, 0);
    hvdrun__probed__free_unpacked(probed, NULL);
    fake_quit(&driver);
}

static void test_what_cannot_be(void **state)
{
    struct fake_driver driver;
    (void)state;
    fake_open(&driver);
    listen_on(&driver, 1, "127.0.0.1", 7, "a token");
    listen_on(&driver, 2, "not numeric", sizeof(token), "not numeric");
    listen_on(&driver, 3, "192.0.2.77", sizeof(token), "192.0.2.77");
    listen_on(&driver, 4, "127.0.0.1", sizeof(token), "");
    fake_quit(&driver);
}

/* It quits while it calls somebody who never answers. */
static void test_quit_in_the_middle(void **state)
{
    struct fake_driver driver;
    (void)state;
    fake_open(&driver);
    uint32_t port = listen_on(&driver, 1, "127.0.0.1", sizeof(token), "");
    Hvdrun__Probe message = HVDRUN__PROBE__INIT;
    Hvdrun__ProbePeer peer = HVDRUN__PROBE_PEER__INIT, *pointer = &peer;
    peer.address = (char *)"127.0.0.1";
    peer.port = port;
    peer.token = (ProtobufCBinaryData){sizeof(token), token};
    message.peers = &pointer;
    message.n_peers = 1;
    message.limit_ms = message.transfer_ms = 60000;
    fake_ask(&driver, &topic_probe, 2, &message.base);
    fake_settle(&driver);
    fake_quit(&driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_quit_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
