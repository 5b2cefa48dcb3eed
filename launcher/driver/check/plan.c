/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/check/plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NO_ROUND (-1)

static void add_both(struct check_route *routes, size_t *count, int one, int other)
{
    routes[(*count)++] = (struct check_route){one, other, NO_ROUND};
    routes[(*count)++] = (struct check_route){other, one, NO_ROUND};
}

/* Neighbours first, so that the rounds are full. */
static size_t make_routes(int hosts, struct check_route *routes)
{
    size_t count = 0;
    for (int step = 1; step <= hosts / 2; step = hosts <= CHECK_ALL_PAIRS ? step + 1 : 2 * step) {
        for (int i = 0; i < hosts; i++) {
            int other = (i + step) % hosts;
            if (2 * step == hosts && other < i)
                continue; /* the same two hosts again */
            add_both(routes, &count, i, other);
        }
    }
    return count;
}

static int compare_routes(const void *a, const void *b)
{
    const struct check_route *one = a, *other = b;
    if (one->from != other->from)
        return one->from < other->from ? -1 : 1;
    return (one->to > other->to) - (one->to < other->to);
}

/* Each round takes any route whose two hosts are free. */
static int make_rounds(struct check_route *routes, size_t count, int hosts)
{
    bool *busy AUTO_FREE = mem_array((size_t)hosts, sizeof(*busy));
    size_t left = count;
    int round = 0;
    for (; left > 0; round++) {
        memset(busy, 0, (size_t)hosts * sizeof(*busy));
        for (size_t i = 0; i < count; i++) {
            struct check_route *route = &routes[i];
            if (route->round != NO_ROUND || busy[route->from] || busy[route->to])
                continue;
            route->round = round;
            busy[route->from] = busy[route->to] = true;
            left--;
        }
    }
    return round;
}

struct check_route *check_plan(int hosts, size_t *count, int *rounds)
{
    size_t most = (size_t)hosts * 2 * CHECK_ALL_PAIRS;
    struct check_route *routes = mem_array(most > 0 ? most : 1, sizeof(*routes));
    *count = make_routes(hosts, routes);
    *rounds = make_rounds(routes, *count, hosts);
    if (*count > 1)
        qsort(routes, *count, sizeof(*routes), compare_routes);
    return routes;
}
