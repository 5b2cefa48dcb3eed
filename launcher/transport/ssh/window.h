/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many calls go on at the same time: a number in all, and a smaller one for each server or jump
 * host. That is because sshd drops connections at random when too many are not yet logged in
 * (MaxStartups 10:30:100). Calls are served in order; a call whose server is busy lets others pass.
 *
 * If a server drops connections all the same, its number is halved. Each login then adds one. No
 * clock, no loop: the owner asks which ticket is next whenever something has changed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SSH_RETRIES_MAX 5

struct ssh_window;
struct ssh_ticket;

struct ssh_window *ssh_window_create(int total);
void ssh_window_destroy(struct ssh_window *window); /* after its tickets; accepts NULL */
int ssh_window_per_server(int total);               /* max(8, total / 10), at most `total` */

/* A ticket waits from the beginning; `context` is given back by ssh_window_next(). */
struct ssh_ticket *ssh_ticket_create(struct ssh_window *window, void *context);
void ssh_ticket_destroy(struct ssh_ticket *ticket); /* gives back all it has; accepts NULL */

/* Gives back its place in the window and waits again, now for a place at `server` too (NULL: for
 * none). It keeps its place in the order. */
void ssh_ticket_wait(struct ssh_ticket *ticket, const char *server);
/* Neither waits nor has anything: a retry is due later. */
void ssh_ticket_rest(struct ssh_ticket *ticket);
/* The login is over: the place at the server is given back, the one in the window is not. */
void ssh_ticket_logged_in(struct ssh_ticket *ticket);
/* The server has dropped us: fewer at once. */
void ssh_ticket_dropped(struct ssh_ticket *ticket);

/* Lets the first ticket in that may go and returns its context; NULL: none. */
void *ssh_window_next(struct ssh_window *window);

/* How long to rest before retry 1, 2, ... It begins with 250 ms and doubles, times 0.5 to 1.5 by
 * `random`. So calls that were dropped together do not come back together. */
int64_t ssh_retry_delay_ms(int retry, uint32_t random);
