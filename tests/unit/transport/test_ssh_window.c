/* SPDX-License-Identifier: Apache-2.0 */
/* The window, alone and with simulated servers under a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "transport/ssh/parts.h"

static void test_arithmetic(void **state)
{
    (void)state;
    assert_int_equal(ssh_window_per_server(64), 8);
    assert_int_equal(ssh_window_per_server(200), 20);
    assert_int_equal(ssh_window_per_server(3), 3);
    for (int retry = 1; retry < 6; retry++) {
        int64_t middle = 250 << (retry - 1);
        assert_int_equal(ssh_retry_delay_ms(retry, 0), middle / 2);
        assert_in_range(ssh_retry_delay_ms(retry, UINT32_MAX), middle * 3 / 2 - 1, middle * 3 / 2);
    }
}

static void test_order_and_total(void **state)
{
    (void)state;
    struct ssh_window *window = ssh_window_create(2);
    int calls[4];
    struct ssh_ticket *tickets[4];
    for (int i = 0; i < 4; i++)
        tickets[i] = ssh_ticket_create(window, &calls[i]);
    assert_ptr_equal(ssh_window_next(window), &calls[0]);
    assert_ptr_equal(ssh_window_next(window), &calls[1]);
    assert_null(ssh_window_next(window));
    ssh_ticket_destroy(tickets[0]);
    assert_ptr_equal(ssh_window_next(window), &calls[2]);
    ssh_ticket_wait(tickets[1], "s"); /* again, and before the fourth */
    assert_ptr_equal(ssh_window_next(window), &calls[1]);
    assert_null(ssh_window_next(window));
    for (int i = 1; i < 4; i++)
        ssh_ticket_destroy(tickets[i]);
    ssh_window_destroy(window);
}

static void test_per_server(void **state)
{
    (void)state;
    struct ssh_window *window = ssh_window_create(64);
    int calls[10], other;
    struct ssh_ticket *tickets[10];
    for (int i = 0; i < 10; i++) {
        tickets[i] = ssh_ticket_create(window, &calls[i]);
        ssh_ticket_wait(tickets[i], "one");
    }
    struct ssh_ticket *passer = ssh_ticket_create(window, &other);
    ssh_ticket_wait(passer, "two");
    for (int i = 0; i < 8; i++)
        assert_ptr_equal(ssh_window_next(window), &calls[i]);
    assert_ptr_equal(ssh_window_next(window), &other);
    assert_null(ssh_window_next(window));
    ssh_ticket_logged_in(tickets[0]);
    assert_ptr_equal(ssh_window_next(window), &calls[8]);
    assert_null(ssh_window_next(window));
    /* A drop halves what the server gets: 8 -> 4. */
    ssh_ticket_dropped(tickets[1]);
    for (int i = 1; i < 5; i++)
        ssh_ticket_rest(tickets[i]);
    assert_null(ssh_window_next(window)); /* four still go */
    ssh_ticket_rest(tickets[5]);
    assert_ptr_equal(ssh_window_next(window), &calls[9]);
    for (int i = 0; i < 10; i++)
        ssh_ticket_destroy(tickets[i]);
    ssh_ticket_destroy(passer);
    ssh_window_destroy(window);
}

#define HOSTS 300
#define LOGIN_MS 40

/* A server that drops every connection beyond `most` half-open ones, and what calls do about it. */
struct trial {
    int64_t due; /* -1: waits for its turn */
    bool going, up;
    int retries;
    struct ssh_ticket *ticket;
};

static int simulate(int most, int *worst_retries)
{
    static struct trial trials[HOSTS];
    struct ssh_window *window = ssh_window_create(64);
    uint32_t random = 12345;
    int up = 0, half_open = 0;
    *worst_retries = 0;
    for (int i = 0; i < HOSTS; i++) {
        trials[i] = (struct trial){.due = -1};
        trials[i].ticket = ssh_ticket_create(window, &trials[i]);
        ssh_ticket_wait(trials[i].ticket, "server");
    }
    for (int64_t now = 0; now < 600000 && up < HOSTS; now++) {
        for (int i = 0; i < HOSTS; i++) {
            struct trial *trial = &trials[i];
            if (trial->up || trial->due != now)
                continue;
            trial->due = -1;
            if (trial->going) {
                half_open--;
                up++;
                trial->up = true;
                ssh_ticket_logged_in(trial->ticket);
                ssh_ticket_destroy(trial->ticket);
            } else {
                ssh_ticket_wait(trial->ticket, "server");
            }
        }
        for (struct trial *trial = ssh_window_next(window); trial != NULL;
             trial = ssh_window_next(window)) {
            random = random * 1664525u + 1013904223u;
            if (half_open < most) {
                half_open++;
                trial->going = true;
                trial->due = now + LOGIN_MS;
                continue;
            }
            ssh_ticket_dropped(trial->ticket);
            ssh_ticket_rest(trial->ticket);
            trial->due = now + ssh_retry_delay_ms(++trial->retries, random);
            if (trial->retries > *worst_retries)
                *worst_retries = trial->retries;
        }
    }
    ssh_window_destroy(window);
    return up;
}

static void test_servers(void **state)
{
    (void)state;
    int worst;
    assert_int_equal(simulate(10, &worst), HOSTS); /* OpenSSH's default: nobody is dropped */
    assert_int_equal(worst, 0);
    assert_int_equal(simulate(4, &worst), HOSTS);
    assert_in_range(worst, 1, SSH_RETRIES_MAX);
    assert_int_equal(simulate(2, &worst), HOSTS);
    assert_in_range(worst, 1, SSH_RETRIES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_order_and_total),
        cmocka_unit_test(test_per_server),
        cmocka_unit_test(test_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
