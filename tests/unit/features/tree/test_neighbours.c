/* SPDX-License-Identifier: Apache-2.0 */
/* A parent and its child in one loop, and strangers at the parent's port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/fake_driver.h"
#include "features/tree/neighbours.h"

#define SIZE 20          /* 3 to 5 are below 0 */
#define ROOM (4 * 3 + 2) /* guests of 0: its children, and those who are not known yet */
#define MANY_TURNS 1000

static const uint8_t key[TLS_KEY_SIZE] = {1, 2, 3};

struct child {
    bool joined, left;
};

static void joined(void *context)
{
    ((struct child *)context)->joined = true;
}

static void left(void *context, const char *why)
{
    (void)why;
    ((struct child *)context)->left = true;
}

static int down(void *context, const uint8_t *body, size_t length)
{
    (void)context, (void)body, (void)length;
    return -1;
}

static struct tree_neighbours *create(struct loop *loop, int place, struct child *child)
{
    static const struct tree_neighbours_ops ops = {joined, left, down};
    struct tree_shape shape = tree_shape_of(SIZE);
    struct tree_neighbours *all = neighbours_create(loop, &shape, place, key, 5000, &ops, child);
    assert_int_equal(neighbours_use_tls(all, HVDRUN_TLS_MODULE, NULL), 0);
    return all;
}

static int dial(const struct socket_address *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to->at, to->length), 0);
    return fd;
}

/* Strangers who say nothing take all places. A child comes in when one of them has gone, and others
 * when the next ones have. */
static void test_children_behind_strangers(void **state)
{
    struct loop *loop = loop_create(NULL);
    struct tree_neighbours *parent = create(loop, 0, NULL), *below[3];
    struct child children[3] = {{false}};
    struct socket_address address;
    uint32_t port = 0;
    int strangers[ROOM];
    (void)state;
    assert_int_equal(neighbours_wait(parent, "127.0.0.1", &port, NULL), 0);
    assert_true(socket_address_set(&address, "127.0.0.1", port));
    for (int i = 0; i < ROOM; i++)
        strangers[i] = dial(&address);
    run_turns(loop, MANY_TURNS);
    for (int i = 0; i < 3; i++) {
        below[i] = create(loop, 3 + i, &children[i]);
        assert_int_equal(neighbours_join(below[i], &address, NULL), 0);
        run_turns(loop, MANY_TURNS);
        assert_false(children[i].joined || children[i].left);
        assert_null(neighbours_child(parent, 3 + i));
        close(strangers[i]);
        run_until(loop, children[i].joined || children[i].left);
        assert_true(children[i].joined);
        assert_non_null(neighbours_child(parent, 3 + i));
    }
    for (int i = 3; i < ROOM; i++)
        close(strangers[i]);
    run_turns(loop, MANY_TURNS);
    for (int i = 0; i < 3; i++) {
        assert_non_null(neighbours_child(parent, 3 + i));
        neighbours_destroy(below[i]);
    }
    neighbours_destroy(parent);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_behind_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
