/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/shape.h"

#define RADIX_MIN 2

static long places_in_three_levels(long radix)
{
    return radix + radix * radix + radix * radix * radix;
}

struct tree_shape tree_shape_of(int size)
{
    struct tree_shape shape = {.size = size, .radix = RADIX_MIN};
    while (places_in_three_levels(shape.radix) < size && shape.radix < TREE_RADIX_MAX)
        shape.radix++;
    return shape;
}

bool tree_shape_is_valid(const struct tree_shape *shape)
{
    return shape->size > 0 && shape->size <= TREE_SIZE_MAX &&
           shape->radix == tree_shape_of(shape->size).radix;
}

int tree_parent(const struct tree_shape *shape, int place)
{
    return place < shape->radix ? TREE_ROOT : place / shape->radix - 1;
}

int tree_first_child(const struct tree_shape *shape, int place)
{
    return (place + 1) * shape->radix;
}

int tree_children(const struct tree_shape *shape, int place)
{
    long left = shape->size - (place + 1L) * shape->radix;
    return left < 0 ? 0 : left < shape->radix ? (int)left : shape->radix;
}

int tree_toward(const struct tree_shape *shape, int from, int to)
{
    int below = to;
    while (below > from) {
        int parent = tree_parent(shape, below);
        if (parent == from)
            return below;
        below = parent;
    }
    return below == from ? from : -1;
}
