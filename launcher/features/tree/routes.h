/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which agents the driver reaches through which others. Pure: the driver alone decides.
 *
 * Each agent keeps its own link to the driver. At first all are direct. An agent that has connected
 * to its parent is below it, and the driver sends to the highest agent above it that is direct. If
 * something is wrong on that way, one connection of it is given up. The agent below it is direct
 * again, and what is below that agent is reached by way of it. So a lost agent's children return to
 * the driver, and no way ever has a circle. They connect again if it was only silent.
 */
#pragma once

#include "features/tree/shape.h"

struct tree_routes;

struct tree_routes *tree_routes_create(int size);
void tree_routes_destroy(struct tree_routes *routes); /* accepts NULL */
const struct tree_shape *tree_routes_shape(const struct tree_routes *routes);

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

int tree_routes_through(const struct tree_routes *routes); /* how many are not direct */
