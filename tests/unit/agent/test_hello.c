/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent_config.h"
#include "agent/post.h"
#include "agent/room_test.h"
#include "base/fd.h"
#include "base/mem.h"
#include "helpers_fixture.h"
#include "node/facts.h"
#include "wire/control.pb-c.h"

/* An agent that has just begun, and a driver that waits for its HELLO. */
struct fixture {
    struct helper_loop children;
    struct link *driver;
    struct post post;
    struct node_facts facts;
    struct hello *hello;
    Hvdrun__AgentHello *heard;
    char *path; /* of the test's environment */
    char folder[32], program[64];
};

static void take_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct fixture *f = context;
    assert_int_equal(header->type, FRAME_HELLO);
    assert_null(f->heard); /* once */
    f->heard = hvdrun__agent_hello__unpack(NULL, header->length, body);
    assert_non_null(f->heard);
    loop_stop(f->children.loop);
}

static void ignore_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static void ignore_end(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static int setup(void **state)
{
    static const struct link_ops agent_ops = {.frame = ignore_frame, .closed = ignore_end};
    static const struct link_ops driver_ops = {.frame = take_frame, .closed = ignore_end};
    static struct fixture f;
    int pair[2];
    f = (struct fixture){.path = mem_strdup(getenv("PATH")), .folder = "/tmp/hvdrun-hello-XXXXXX"};
    helper_loop_open(&f.children);
    if (fd_socketpair(pair) < 0 || mkdtemp(f.folder) == NULL)
        return -1;
    snprintf(f.program, sizeof(f.program), "%s/nvidia-smi", f.folder);
    post_init(&f.post, link_create(f.children.loop, pair[0], pair[0], &agent_ops, NULL, NULL));
    f.driver = link_create(f.children.loop, pair[1], pair[1], &driver_ops, &f, NULL);
    setenv("PATH", f.folder, 1);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    setenv("PATH", f->path, 1);
    free(f->path);
    hello_destroy(f->hello);
    hello_destroy(NULL);
    link_destroy(f->driver);
    link_destroy(f->post.link);
    run_turns(f->children.loop, 2);
    helper_loop_close(&f->children);
    if (f->heard != NULL)
        hvdrun__agent_hello__free_unpacked(f->heard, NULL);
    unlink(f->program);
    return rmdir(f->folder);
}

static void put_program(struct fixture *f, const char *script)
{
    FILE *file = fopen(f->program, "w");
    assert_non_null(file);
    assert_true(fputs(script, file) >= 0);
    assert_int_equal(fclose(file) + chmod(f->program, 0700), 0);
}

static void expect_hello(struct fixture *f)
{
    static const struct agent_config config = {.slots = 3, .line = "--nnodes 2 a.py"};
    f->hello = hello_create(f->children.loop, f->children.helpers, &f->post, &f->facts, &config);
    run_loop(f->children.loop);
    assert_non_null(f->heard);
}

static void test_facts(void **state)
{
    struct node_address addresses[] = {
        {.iface = (char *)"lo", .text = (char *)"127.0.0.1", .prefix = 8, .up = true},
        {.iface = (char *)"eth0", .text = (char *)"10.0.0.1", .prefix = 24},
        {.iface = (char *)"eth1", .text = (char *)"10.0.0.2", .prefix = -1, .up = true},
        {.iface = (char *)"eth2",
         .text = (char *)"fd00::1",
         .prefix = -1,
         .up = true,
         .ipv6 = true},
        {.iface = (char *)"ib0", .text = (char *)"10.1.0.1", .prefix = 0, .up = true}};
    static const char *const wanted[] = {"lo 127.0.0.1/8", "eth1 10.0.0.2/32", "eth2 fd00::1/128",
                                         "ib0 10.1.0.1/0"};
    struct fixture *f = *state;
    f->facts = (struct node_facts){.hostname = "node1",
                                   .boot_id = "boot",
                                   .machine = "x86_64",
                                   .cpus_online = 8,
                                   .cpus_allowed = 6,
                                   .gpus = 2,
                                   .memory_bytes = 1 << 30,
                                   .addresses = addresses,
                                   .address_count = sizeof(addresses) / sizeof(addresses[0])};
    put_program(f, "#!/bin/sh\necho 'GPU 0: x'\n"); /* it is not asked */
    expect_hello(f);
    assert_int_equal(f->heard->protocol, FRAME_VERSION);
    assert_string_equal(f->heard->version, HVDRUN_VERSION);
    assert_string_equal(f->heard->hostname, "node1");
    assert_string_equal(f->heard->boot_id, "boot");
    assert_string_equal(f->heard->machine, "x86_64");
    assert_int_equal(f->heard->pid, getpid());
    assert_int_equal(f->heard->cpus_allowed, 6);
    assert_int_equal(f->heard->cpus_online, 8);
    assert_int_equal(f->heard->gpus, 2);
    assert_int_equal(f->heard->slots, 3);
    assert_string_equal(f->heard->line, "--nnodes 2 a.py");
    assert_int_equal(f->heard->memory_bytes, 1 << 30);
    assert_int_equal(f->heard->n_interfaces, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(f->heard->interfaces[i], wanted[i]);
}

/* Without a driver, a program that claims to know GPUs is not asked. */
static void test_no_driver(void **state)
{
    struct fixture *f = *state;
    if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0)
        skip();
    put_program(f, "#!/bin/sh\necho 'GPU 0: H100 (UUID: GPU-1)'\n");
    expect_hello(f);
    assert_int_equal(f->heard->gpus, 0);
    assert_int_equal(f->facts.gpus_told, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_facts),
        TEST(test_no_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
