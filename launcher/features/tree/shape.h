/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of the tree: the driver is its root, and the agents have the places from 0 on, level by
 * level. Each agent is below one other, or below the driver. There are at most three levels of
 * agents, so the driver sends about as many copies as the cube root of their number. Pure.
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

/* The child of `from` on the way down to `to`; `to` itself if it is `from`. -1: `to` is not below
 * `from`. */
int tree_toward(const struct tree_shape *shape, int from, int to);
