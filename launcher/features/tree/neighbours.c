/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/neighbours.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "features/tree/tree_frames.h"
#include "io/module_open.h"
#include "wire/control.pb-c.h"

struct child {
    LIST_ENTRY(child) others;
    struct tree_neighbours *all;
    struct tree_link *link;
    int place; /* -1: not known yet */
};

struct tree_neighbours {
    struct loop *loop;
    struct tree_shape shape;
    int place;
    uint8_t key[TLS_KEY_SIZE];
    int64_t dead_after_ms;
    const struct tree_neighbours_ops *ops;
    void *context;
    struct tree_tls server, client; /* no module: not needed yet */
    struct listener *listener;
    struct tree_link *parent;
    bool joined;
    LIST_HEAD(, child) children;
    int count, room; /* of children, and of those who are not known yet */
};

struct tree_neighbours *neighbours_create(struct loop *loop, const struct tree_shape *shape,
                                          int place, const uint8_t *key, int64_t dead_after_ms,
                                          const struct tree_neighbours_ops *ops, void *context)
{
    struct tree_neighbours *all =
        MEM_NEW((struct tree_neighbours){.loop = loop,
                                         .shape = *shape,
                                         .place = place,
                                         .dead_after_ms = dead_after_ms,
                                         .ops = ops,
                                         .context = context,
                                         .room = 4 * tree_children(shape, place) + 2});
    memcpy(all->key, key, sizeof(all->key));
    return all;
}

static struct child *find_child(const struct tree_neighbours *all, int place)
{
    struct child *child;
    LIST_FOREACH (child, &all->children, others) {
        if (child->place == place)
            break;
    }
    return child;
}

static void drop_child(struct child *child)
{
    struct tree_neighbours *all = child->all;
    LIST_REMOVE(child, others);
    all->count--;
    listener_pause(all->listener, false);
    tree_link_destroy(child->link);
    free(child);
}

void neighbours_destroy(struct tree_neighbours *all)
{
    if (all == NULL)
        return;
    while (!LIST_EMPTY(&all->children))
        drop_child(LIST_FIRST(&all->children));
    listener_destroy(all->listener);
    tree_link_destroy(all->parent);
    if (all->server.module != NULL) {
        all->server.module->party_destroy(all->server.party);
        all->client.module->party_destroy(all->client.party);
    }
    explicit_bzero(all->key, sizeof(all->key));
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

static void child_closed(void *context, struct tree_link *link, const char *why)
{
    (void)link, (void)why; /* it tells the driver itself */
    drop_child(context);
}

void neighbours_drop(struct tree_neighbours *all, int place)
{
    struct child *child = find_child(all, place);
    if (child != NULL)
        drop_child(child);
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
static void let_in(struct child *child, int place)
{
    uint8_t *proof AUTO_FREE = mem_array(TREE_PROOF_BYTES, 1);
    neighbours_drop(child->all, place);
    child->place = place;
    link_send(tree_link_frames(child->link), FRAME_TREE_JOINED, 0, proof, TREE_PROOF_BYTES);
}

static void child_frame(void *context, struct tree_link *link, const struct frame_header *header,
                        const uint8_t *body)
{
    struct child *child = context;
    bool begins = child->place < 0 && header->type == FRAME_TREE_JOINED;
    int place = begins ? recognize(child->all, body, header->length) : -1;
    (void)link;
    if (place >= 0)
        let_in(child, place);
    else
        drop_child(child);
}

static void come(void *context, int fd, const struct sockaddr_storage *from)
{
    static const struct tree_link_ops ops = {NULL, child_frame, child_closed};
    struct tree_neighbours *all = context;
    struct child *child = mem_alloc(sizeof(*child));
    (void)from;
    *child = (struct child){.all = all, .place = -1};
    child->link = tree_link_answer(all->loop, fd, &all->server, all->dead_after_ms, &ops, child);
    LIST_INSERT_HEAD(&all->children, child, others);
    if (++all->count == all->room)
        listener_pause(all->listener, true);
}

int neighbours_wait(struct tree_neighbours *all, const char *address, uint32_t *port,
                    struct error *err)
{
    static const struct listener_ops ops = {.come = come};
    if (all->listener == NULL)
        all->listener = listener_create(all->loop, address, &ops, all, err);
    if (all->listener == NULL)
        return -1;
    *port = listener_port(all->listener);
    return 0;
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
    const struct child *child = find_child(all, place);
    return child == NULL ? NULL : tree_link_frames(child->link);
}
