/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of the tree, and which agents the driver reaches through which others. Pure: the driver
 * alone decides.
 *
 * The driver is the root, and the agents have the places from 0 on, level by level. Each agent is
 * below one other, or below the driver. There are at most three levels of agents, so the driver
 * sends about as many copies as the cube root of their number.
 *
 * Each agent keeps its own link to the driver. At first all are direct. An agent that has connected
 * to its parent is below it, and the driver sends to the highest agent above it that is direct. If
 * something is wrong on that way, one connection of it is given up. The agent below it is direct
 * again, and what is below that agent is reached by way of it. So a lost agent's children return to
 * the driver, and no way ever has a circle. They connect again if it was only silent.
 */
#pragma once

#include <stdbool.h>

#define TREE_ROOT (-1) /* the driver */
#define TREE_SIZE_MAX (1 << 20)
#define TREE_RADIX_MAX 128

struct tree_shape {
    int size;  /* agents */
    int radix; /* children of each at most, and of the driver */
};

struct tree_shape tree_shape_of(int size);
/* Is this a shape that a driver may send? */
bool tree_shape_is_valid(const struct tree_shape *shape);

int tree_parent(const struct tree_shape *shape, int place);
int tree_first_child(const struct tree_shape *shape, int place); /* the others follow it */
int tree_children(const struct tree_shape *shape, int place);    /* their number */

int tree_levels(const struct tree_shape *shape); /* of agents */

/* The child of `from` on the way down to `to`; `to` itself if it is `from`. -1: `to` is not below
 * `from`. */
int tree_toward(const struct tree_shape *shape, int from, int to);

struct tree_routes {
    struct tree_shape shape;
    unsigned char *edges; /* of each place to its parent */
    int through;          /* how many are not direct */
};

struct tree_routes *tree_routes_create(int size);
void tree_routes_destroy(struct tree_routes *routes); /* accepts NULL */

/* It has connected to its parent. false: that was given up before. */
bool tree_routes_connect(struct tree_routes *routes, int place);
/* Its connection to its parent is given up. false: it is direct anyway. */
bool tree_routes_give_up(struct tree_routes *routes, int place);
/* It may connect again. false: it has not been given up. */
bool tree_routes_renew(struct tree_routes *routes, int place);
bool tree_routes_is_direct(const struct tree_routes *routes, int place);

/* To whom the driver sends what is for `place`: a direct agent, perhaps itself. */
int tree_routes_hop(const struct tree_routes *routes, int place);

/* Whose connection to give up, since something that was sent to `place` is late: the highest one on
 * its way below which something is late. -1: it is direct. */
int tree_routes_blame(const struct tree_routes *routes, int place,
                      bool (*is_late)(void *context, int place), void *context);
