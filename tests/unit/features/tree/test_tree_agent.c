/* SPDX-License-Identifier: Apache-2.0 */
/* A real agent in the tree: what it passes on, what it refuses, and how it returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/fake_driver.h"
#include "features/tree/neighbours.h"
#include "features/tree/tree_frames.h"

/* Bytes. Above 32 MiB, malloc() always maps a block of its own, which free() gives back. */
#define LARGE ((size_t)40 << 20)
#define SIZE 20 /* the agent has place 0; 3 to 5 are below it, and 12 to 14 below 3 */

static uint8_t key[TLS_KEY_SIZE] = {1, 2, 3};

struct child {
    struct loop *loop;
    int downs, places[8];
    size_t count;
    bool left, joined, only_counts;
};

static void child_joined(void *context)
{
    struct child *child = context;
    child->joined = true;
    loop_stop(child->loop);
}

static void child_left(void *context, const char *why)
{
    struct child *child = context;
    (void)why;
    child->left = true;
    loop_stop(child->loop);
}

static int child_down(void *context, const uint8_t *body, size_t length)
{
    struct child *child = context;
    Hvdrun__TreeDown *message = hvdrun__tree_down__unpack(NULL, length, body);
    assert_non_null(message);
    for (size_t i = 0; i < message->n_entries; i++)
        child->places[child->count++] = (int)message->entries[i]->place;
    assert_int_equal(message->block.len, child->only_counts ? TREE_MOST_BYTES : 3);
    hvdrun__tree_down__free_unpacked(message, NULL);
    child->downs++;
    loop_stop(child->loop);
    return 0;
}

static const struct tree_neighbours_ops child_ops = {child_joined, child_left, child_down};

static void send_open(struct fake_driver *driver)
{
    Hvdrun__TreeOpen open = HVDRUN__TREE_OPEN__INIT;
    open.size = SIZE;
    open.radix = (uint32_t)tree_shape_of(SIZE).radix;
    open.key = (ProtobufCBinaryData){sizeof(key), key};
    open.address = (char *)"127.0.0.1";
    fake_send(driver, FRAME_TREE_OPEN, 0, &open.base);
}

/* Where the agent waits. */
static struct socket_address open_agent(struct fake_driver *driver)
{
    struct socket_address address;
    send_open(driver);
    struct note note = fake_take(driver, FRAME_TREE_OPENED, 0, NO_SEAT);
    Hvdrun__TreeOpened *opened = hvdrun__tree_opened__unpack(NULL, note.length, note.body);
    assert_string_equal(opened->problem, "");
    assert_true(socket_address_set(&address, "127.0.0.1", opened->port));
    hvdrun__tree_opened__free_unpacked(opened, NULL);
    free(note.body);
    return address;
}

/* In this loop. */
static struct tree_neighbours *call_from(struct loop *loop, struct fake_driver *driver,
                                         struct child *child, int place, const uint8_t *with)
{
    struct tree_shape shape = tree_shape_of(SIZE);
    const struct socket_address address = open_agent(driver);
    *child = (struct child){.loop = loop};
    struct tree_neighbours *all =
        neighbours_create(loop, &shape, place, with, 5000, &child_ops, child);
    assert_int_equal(neighbours_use_tls(all, HVDRUN_TLS_MODULE, NULL), 0);
    assert_int_equal(neighbours_join(all, &address, NULL), 0);
    while (!child->joined && !child->left)
        run_loop(loop);
    return all;
}

static struct tree_neighbours *call_as(struct fake_driver *driver, struct child *child, int place,
                                       const uint8_t *with)
{
    return call_from(driver->loop, driver, child, place, with);
}

static void expect_taken(struct fake_driver *driver, uint64_t serial)
{
    struct note note = fake_take(driver, FRAME_TREE_TAKEN, 0, NO_SEAT);
    Hvdrun__TreeTaken *taken = hvdrun__tree_taken__unpack(NULL, note.length, note.body);
    assert_non_null(taken);
    assert_int_equal(taken->serial, serial);
    hvdrun__tree_taken__free_unpacked(taken, NULL);
    free(note.body);
}

static void send_down(struct fake_driver *driver, const uint32_t *places, size_t count,
                      uint64_t serial, enum frame_type type, ProtobufCBinaryData block)
{
    Hvdrun__TreeDown down = HVDRUN__TREE_DOWN__INIT;
    Hvdrun__TreeEntry entries[8], *pointers[8];
    for (size_t i = 0; i < count; i++) {
        entries[i] = (Hvdrun__TreeEntry)HVDRUN__TREE_ENTRY__INIT;
        entries[i].place = places[i];
        entries[i].serial = serial;
        entries[i].type = (uint32_t)type;
        pointers[i] = &entries[i];
    }
    down.entries = pointers;
    down.n_entries = count;
    down.block = block;
    fake_send(driver, FRAME_TREE_DOWN, 0, &down.base);
}

static void test_parcels_of_one_agent(void **state)
{
    static const uint32_t us[] = {0};
    static const ProtobufCBinaryData nothing = {0, NULL};
    struct fake_driver driver;
    (void)state;
    fake_open(&driver);
    open_agent(&driver);
    send_down(&driver, us, 1, 1, FRAME_MPI_COLLECTED, nothing);
    expect_taken(&driver, 1);
    send_down(&driver, us, 1, 1, FRAME_MPI_COLLECTED, nothing); /* again */
    send_down(&driver, us, 1, 2, FRAME_MPI_MODEX_DATA, nothing);
    expect_taken(&driver, 2);
    fake_quit(&driver);
}

static void test_several_that_break_the_protocol(void **state)
{
    static const uint32_t us[] = {0};
    struct fake_driver driver;
    (void)state;
    fake_open(&driver);
    open_agent(&driver);
    for (uint64_t serial = 1; serial <= 3; serial++)
        send_down(&driver, us, 1, serial, FRAME_MPI_COLLECTED, (ProtobufCBinaryData){3, key});
    while (!driver.closed)
        run_loop(driver.loop);
    assert_true(fake_wait(&driver) < 128); /* it has not crashed */
    fake_close(&driver);
}

#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
/* MiB that were resident in the agent at most. */
static unsigned long most_resident(const struct fake_driver *driver)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/status", (int)driver->agent);
    char line[128], *word = NULL;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (word == NULL && fgets(line, sizeof(line), file) != NULL)
        word = strncmp(line, "VmHWM:", 6) == 0 ? line + 6 : NULL;
    fclose(file);
    assert_non_null(word);
    return strtoul(word, NULL, 10) >> 10;
}

/* What came, and the frame that it becomes: two, and not four as with a copy in each message. Three
 * is as far from both. */
static void test_copies_of_a_large_result(void **state)
{
    struct fake_driver driver;
    Hvdrun__MpiCollected result = HVDRUN__MPI_COLLECTED__INIT;
    Hvdrun__TreeEntry entry = HVDRUN__TREE_ENTRY__INIT, *entries[] = {&entry};
    Hvdrun__TreeDown down = HVDRUN__TREE_DOWN__INIT;
    (void)state;
    fake_open(&driver);
    open_agent(&driver);
    uint8_t *bytes AUTO_FREE = mem_array(LARGE, 1);
    struct buf head AUTO_BUF = message_head(&result.base, 4 /* data */, LARGE);
    entry.serial = 1;
    entry.type = FRAME_MPI_COLLECTED;
    entry.body = (ProtobufCBinaryData){head.length, (uint8_t *)buf_text(&head)};
    down.entries = entries;
    down.n_entries = 1;
    down.block = (ProtobufCBinaryData){LARGE, bytes};
    unsigned long before = most_resident(&driver);
    fake_send(&driver, FRAME_TREE_DOWN, 0, &down.base);
    expect_taken(&driver, 1);
    fake_settle(&driver);
    assert_true(most_resident(&driver) - before < 3 * (LARGE >> 20));
    fake_quit(&driver);
}
#endif

static void test_passes_on(void **state)
{
    static const uint32_t places[] = {3, 4, 13};
    struct fake_driver driver;
    struct child child;
    (void)state;
    fake_open(&driver);
    struct tree_neighbours *all = call_as(&driver, &child, 3, key);
    assert_true(child.joined); /* so the agent knows it, and passes on */
    send_down(&driver, places, 3, 1, FRAME_MPI_COLLECTED, (ProtobufCBinaryData){3, key});
    while (child.downs == 0)
        run_loop(driver.loop);
    assert_int_equal(child.count, 2);
    assert_int_equal(child.places[0], 3);
    assert_int_equal(child.places[1], 13);
    neighbours_destroy(all);
    fake_quit(&driver);
}

/* The driver hears of it at once, and the child's connection ends. */
static void test_a_child_that_does_not_read(void **state)
{
    static const uint32_t below[] = {3};
    struct fake_driver driver;
    struct child child;
    (void)state;
    fake_open(&driver);
    struct loop *loop = loop_create(NULL);
    struct tree_neighbours *all = call_from(loop, &driver, &child, 3, key);
    assert_true(child.joined);
    uint8_t *bytes AUTO_FREE = mem_array(TREE_MOST_BYTES, 1);
    for (uint64_t serial = 1; serial <= 8; serial++)
        send_down(&driver, below, 1, serial, FRAME_MPI_COLLECTED,
                  (ProtobufCBinaryData){TREE_MOST_BYTES, bytes});
    struct note note = fake_take(&driver, FRAME_TREE_LEFT, 0, NO_SEAT);
    Hvdrun__TreeLeft *left = hvdrun__tree_left__unpack(NULL, note.length, note.body);
    assert_int_equal(left->below, 3);
    hvdrun__tree_left__free_unpacked(left, NULL);
    free(note.body);
    child.only_counts = true;
    while (!child.left)
        run_loop(loop);
    assert_true(child.downs < 8);
    neighbours_destroy(all);
    loop_destroy(loop);
    fake_quit(&driver);
}

static void test_a_child_of_another(void **state)
{
    struct fake_driver driver;
    struct child child;
    (void)state;
    fake_open(&driver);
    struct tree_neighbours *all = call_as(&driver, &child, 13, key);
    assert_true(child.left);
    assert_false(child.joined);
    neighbours_destroy(all);
    fake_quit(&driver);
}

static void test_without_the_key(void **state)
{
    static const uint8_t other[TLS_KEY_SIZE] = {9};
    struct fake_driver driver;
    struct child child;
    (void)state;
    fake_open(&driver);
    struct tree_neighbours *all = call_as(&driver, &child, 3, other);
    assert_true(child.left);
    assert_false(child.joined);
    neighbours_destroy(all);
    fake_quit(&driver);
}

static void test_an_address_that_is_not_there(void **state)
{
    struct fake_driver driver;
    (void)state;
    fake_open(&driver);
    Hvdrun__TreeOpen open = HVDRUN__TREE_OPEN__INIT;
    open.size = SIZE;
    open.radix = (uint32_t)tree_shape_of(SIZE).radix;
    open.key = (ProtobufCBinaryData){sizeof(key), key};
    open.address = (char *)"192.0.2.1";
    fake_send(&driver, FRAME_TREE_OPEN, 0, &open.base);
    struct note note = fake_take(&driver, FRAME_TREE_OPENED, 0, NO_SEAT);
    Hvdrun__TreeOpened *opened = hvdrun__tree_opened__unpack(NULL, note.length, note.body);
    assert_string_not_equal(opened->problem, "");
    assert_int_equal(opened->port, 0);
    hvdrun__tree_opened__free_unpacked(opened, NULL);
    free(note.body);
    fake_quit(&driver);
}

static void test_what_a_driver_never_sends(void **state)
{
    static const struct {
        bool opens;
        uint32_t place;
        uint64_t serial;
        enum frame_type type;
    } wrong[] = {{false, 0, 1, FRAME_MPI_COLLECTED},
                 {true, SIZE, 1, FRAME_MPI_COLLECTED},
                 {true, 1, 1, FRAME_MPI_COLLECTED},
                 {true, 0, 0, FRAME_MPI_COLLECTED},
                 {true, 0, 2, FRAME_MPI_COLLECTED}, /* its own link loses nothing */
                 {true, 0, 1, FRAME_QUIT}};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct fake_driver driver;
        fake_open(&driver);
        if (wrong[i].opens)
            open_agent(&driver);
        send_down(&driver, &wrong[i].place, 1, wrong[i].serial, wrong[i].type,
                  (ProtobufCBinaryData){0, NULL});
        while (!driver.closed)
            run_loop(driver.loop);
        fake_wait(&driver);
        fake_close(&driver);
    }
}

static void test_a_parent_that_is_not_there(void **state)
{
    struct fake_driver driver;
    (void)state;
    fake_open(&driver);
    Hvdrun__TreeJoin join = HVDRUN__TREE_JOIN__INIT;
    join.place = 3;
    join.size = SIZE;
    join.radix = (uint32_t)tree_shape_of(SIZE).radix;
    join.key = (ProtobufCBinaryData){sizeof(key), key};
    join.address = (char *)"no address";
    join.port = 1;
    fake_send(&driver, FRAME_TREE_JOIN, 0, &join.base);
    fake_expect(&driver, FRAME_TREE_LEFT, 0, NO_SEAT);
    fake_ask(&driver, &topic_pulse, 3, NULL); /* as without a tree */
    message_free(fake_answer(&driver, &topic_pulse, 3, 0, false));
    fake_quit(&driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parcels_of_one_agent),
        cmocka_unit_test(test_several_that_break_the_protocol),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(test_copies_of_a_large_result),
#endif
        cmocka_unit_test(test_passes_on),
        cmocka_unit_test(test_a_child_that_does_not_read),
        cmocka_unit_test(test_a_child_of_another),
        cmocka_unit_test(test_without_the_key),
        cmocka_unit_test(test_an_address_that_is_not_there),
        cmocka_unit_test(test_what_a_driver_never_sends),
        cmocka_unit_test(test_a_parent_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
