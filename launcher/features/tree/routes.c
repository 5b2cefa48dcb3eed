/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/routes.h"

#include <stdlib.h>

#include "base/mem.h"

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

int tree_levels(const struct tree_shape *shape)
{
    int levels = 0;
    for (int place = shape->size - 1; place != TREE_ROOT; place = tree_parent(shape, place))
        levels++;
    return levels;
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

enum edge { EDGE_NONE, EDGE_UP, EDGE_GIVEN_UP };

struct tree_routes *tree_routes_create(int size)
{
    struct tree_routes *routes = mem_alloc(sizeof(*routes));
    routes->shape = tree_shape_of(size);
    routes->edges = mem_array((size_t)size, sizeof(*routes->edges));
    return routes;
}

void tree_routes_destroy(struct tree_routes *routes)
{
    if (routes != NULL)
        free(routes->edges);
    free(routes);
}

bool tree_routes_is_direct(const struct tree_routes *routes, int place)
{
    return routes->edges[place] != EDGE_UP;
}

bool tree_routes_connect(struct tree_routes *routes, int place)
{
    if (tree_parent(&routes->shape, place) == TREE_ROOT)
        return true;
    if (routes->edges[place] != EDGE_NONE)
        return false;
    routes->edges[place] = EDGE_UP;
    routes->through++;
    return true;
}

bool tree_routes_give_up(struct tree_routes *routes, int place)
{
    bool was_up = routes->edges[place] == EDGE_UP;
    routes->edges[place] = EDGE_GIVEN_UP;
    routes->through -= was_up;
    return was_up;
}

bool tree_routes_renew(struct tree_routes *routes, int place)
{
    bool may = routes->edges[place] == EDGE_GIVEN_UP;
    if (may)
        routes->edges[place] = EDGE_NONE;
    return may;
}

int tree_routes_hop(const struct tree_routes *routes, int place)
{
    while (!tree_routes_is_direct(routes, place))
        place = tree_parent(&routes->shape, place);
    return place;
}

int tree_routes_blame(const struct tree_routes *routes, int place,
                      bool (*is_late)(void *context, int place), void *context)
{
    int blamed = -1, above = place;
    while (!tree_routes_is_direct(routes, above)) {
        int parent = tree_parent(&routes->shape, above);
        if (above == place || is_late(context, above) || is_late(context, parent))
            blamed = above;
        above = parent;
    }
    return blamed;
}
