/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "features/tree/tree_frames.h"
#include "io/module_open.h"
#include "wire/control.pb-c.h"

struct tree_neighbours {
    struct loop *loop;
    struct tree_shape shape;
    int place;
    uint8_t key[TLS_KEY_SIZE];
    int64_t dead_after_ms;
    const struct tree_neighbours_ops *ops;
    void *context;
    struct tree_tls server, client; /* no module: not needed yet */
    struct tree_door *door;
    struct tree_link *parent;
    bool joined;
    struct tree_link **links; /* of children, and of those who are not known yet: `places` -1 */
    int *places;
    size_t count, room;
};

struct tree_neighbours *neighbours_create(struct loop *loop, const struct tree_shape *shape,
                                          int place, const uint8_t *key, int64_t dead_after_ms,
                                          const struct tree_neighbours_ops *ops, void *context)
{
    struct tree_neighbours *all = mem_alloc(sizeof(*all));
    *all = (struct tree_neighbours){.loop = loop,
                                    .shape = *shape,
                                    .place = place,
                                    .dead_after_ms = dead_after_ms,
                                    .ops = ops,
                                    .context = context};
    memcpy(all->key, key, sizeof(all->key));
    all->room = 2 * (size_t)tree_children(shape, place) + 1;
    all->links = mem_array(all->room, sizeof(struct tree_link *));
    all->places = mem_array(all->room, sizeof(*all->places));
    return all;
}

void neighbours_destroy(struct tree_neighbours *all)
{
    if (all == NULL)
        return;
    tree_door_destroy(all->door);
    tree_link_destroy(all->parent);
    for (size_t i = 0; i < all->count; i++)
        tree_link_destroy(all->links[i]);
    if (all->server.module != NULL) {
        all->server.module->party_destroy(all->server.party);
        all->client.module->party_destroy(all->client.party);
    }
    explicit_bzero(all->key, sizeof(all->key));
    free(all->links);
    free(all->places);
    free(all);
}

int neighbours_use_tls(struct tree_neighbours *all, const char *module_path, struct error *err)
{
    if (all->server.module != NULL)
        return 0;
    const struct tls_module *module = module_open(module_path, TLS_MODULE_KIND, err);
    struct tls_party_config config = {.is_server = true};
    if (module == NULL)
        return -1;
    memcpy(config.key, all->key, sizeof(config.key));
    struct tls_party *server = module->party_create(&config, err);
    config.is_server = false;
    config.identity = TREE_IDENTITY;
    struct tls_party *client = server == NULL ? NULL : module->party_create(&config, err);
    explicit_bzero(config.key, sizeof(config.key));
    if (client == NULL) {
        module->party_destroy(server);
        return -1;
    }
    all->server = (struct tree_tls){module, server};
    all->client = (struct tree_tls){module, client};
    return 0;
}

/* Children */

static size_t index_of(const struct tree_neighbours *all, const struct tree_link *link)
{
    size_t i = 0;
    while (all->links[i] != link)
        i++;
    return i;
}

static void drop_child(struct tree_neighbours *all, struct tree_link *link)
{
    size_t i = index_of(all, link);
    all->count--;
    all->links[i] = all->links[all->count];
    all->places[i] = all->places[all->count];
    tree_link_destroy(link);
}

static void child_open(void *context, struct tree_link *link)
{
    struct tree_neighbours *all = context;
    if (all->count == all->room) {
        tree_link_destroy(link);
        return;
    }
    all->places[all->count] = -1;
    all->links[all->count++] = link;
}

static void child_closed(void *context, struct tree_link *link, const char *why)
{
    (void)why; /* it tells the driver itself */
    drop_child(context, link);
}

void neighbours_drop(struct tree_neighbours *all, int place)
{
    size_t i = 0;
    while (i < all->count && all->places[i] != place)
        i++;
    if (i < all->count)
        drop_child(all, all->links[i]);
}

/* The place of the child that says who it is; -1: it is none of ours. */
static int recognize(const struct tree_neighbours *all, const uint8_t *body, size_t length)
{
    Hvdrun__TreeJoined *message = hvdrun__tree_joined__unpack(NULL, length, body);
    bool known = message != NULL && message->place < (uint32_t)all->shape.size &&
                 tree_parent(&all->shape, (int)message->place) == all->place;
    int place = known ? (int)message->place : -1;
    if (message != NULL)
        hvdrun__tree_joined__free_unpacked(message, NULL);
    return place;
}

/* A child that comes again has given up its connection from before. */
static int let_in(struct tree_neighbours *all, struct tree_link *link, int place)
{
    uint8_t *proof AUTO_FREE = mem_array(TREE_PROOF_BYTES, 1);
    if (place >= 0)
        neighbours_drop(all, place);
    all->places[index_of(all, link)] = place;
    if (place >= 0)
        link_send(tree_link_frames(link), FRAME_TREE_JOINED, 0, proof, TREE_PROOF_BYTES);
    return place;
}

static void child_frame(void *context, struct tree_link *link, const struct frame_header *header,
                        const uint8_t *body)
{
    struct tree_neighbours *all = context;
    int child = all->places[index_of(all, link)];
    if (child >= 0 || header->type != FRAME_TREE_JOINED ||
        let_in(all, link, recognize(all, body, header->length)) < 0)
        drop_child(all, link);
}

int neighbours_wait(struct tree_neighbours *all, const char *address, uint32_t *port,
                    struct error *err)
{
    static const struct tree_link_ops ops = {child_open, child_frame, child_closed};
    if (all->door == NULL)
        all->door = tree_door_create(all->loop, address, &all->server, (int)all->room,
                                     all->dead_after_ms, &ops, all, err);
    if (all->door != NULL)
        *port = tree_door_port(all->door);
    return all->door == NULL ? -1 : 0;
}

/* The parent */

void neighbours_leave(struct tree_neighbours *all)
{
    struct tree_link *parent = all->parent;
    all->parent = NULL;
    all->joined = false;
    tree_link_destroy(parent);
}

static void parent_open(void *context, struct tree_link *link)
{
    struct tree_neighbours *all = context;
    Hvdrun__TreeJoined message = HVDRUN__TREE_JOINED__INIT;
    message.place = (uint32_t)all->place;
    link_send_message(tree_link_frames(link), FRAME_TREE_JOINED, 0, &message.base);
}

static void give_up(struct tree_neighbours *all, const char *why)
{
    char *kept AUTO_FREE = mem_strdup(why); /* it may be of what goes now */
    neighbours_leave(all);
    all->ops->left(all->context, kept);
}

static void parent_closed(void *context, struct tree_link *link, const char *why)
{
    (void)link;
    give_up(context, why);
}

static void parent_frame(void *context, struct tree_link *link, const struct frame_header *header,
                         const uint8_t *body)
{
    struct tree_neighbours *all = context;
    (void)link;
    if (!all->joined && header->type == FRAME_TREE_JOINED && header->length == TREE_PROOF_BYTES) {
        all->joined = true;
        all->ops->joined(all->context);
    } else if (!all->joined || header->type != FRAME_TREE_DOWN ||
               all->ops->down(all->context, body, header->length) < 0) {
        give_up(all, "the agent above broke the protocol");
    }
}

int neighbours_join(struct tree_neighbours *all, const struct socket_address *parent,
                    struct error *err)
{
    static const struct tree_link_ops ops = {parent_open, parent_frame, parent_closed};
    neighbours_leave(all);
    all->parent =
        tree_link_call(all->loop, parent, &all->client, all->dead_after_ms, &ops, all, err);
    return all->parent == NULL ? -1 : 0;
}

struct link *neighbours_child(const struct tree_neighbours *all, int place)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->places[i] == place)
            return tree_link_frames(all->links[i]);
    }
    return NULL;
}
