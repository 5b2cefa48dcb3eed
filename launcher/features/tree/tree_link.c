/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/tree_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/tls_stream.h"

struct tree_link {
    struct loop *loop;
    int fd; /* until it is open */
    struct loop_fd *watch;
    struct loop_timer *limit;
    const struct tree_tls *tls;
    struct tls_session *session; /* until it is open */
    struct tls_stream *stream;
    struct link *frames;
    const struct tree_link_ops *ops;
    void *context;
};

void tree_link_destroy(struct tree_link *link)
{
    if (link == NULL)
        return;
    loop_timer_destroy(link->limit);
    loop_fd_destroy(link->watch);
    link_destroy(link->frames);
    tls_stream_destroy(link->stream);
    if (link->session != NULL)
        link->tls->module->destroy(link->session);
    fd_close(&link->fd);
    free(link);
}

struct link *tree_link_frames(struct tree_link *link)
{
    return link->frames;
}

static void fail(struct tree_link *link, const char *why)
{
    link->ops->closed(link->context, link, why);
}

/* Open */

static void got_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct tree_link *link = context;
    loop_timer_clear(link->limit);
    link->ops->frame(link->context, link, header, body);
}

static void got_end(void *context, const char *reason)
{
    struct tree_link *link = context;
    struct link *frames = link->frames;
    link->frames = NULL;
    link_destroy(frames);
    link->ops->closed(link->context, link, reason == NULL ? "the connection ended" : reason);
}

static void stream_ended(void *context, const char *why)
{
    (void)context; /* got_end() follows */
    (void)why;
}

static void come_in(struct tree_link *link)
{
    static const struct link_ops ops = {.frame = got_frame, .closed = got_end};
    struct error err = ERROR_INIT;
    int local_fd = -1;
    loop_fd_destroy(link->watch);
    link->watch = NULL;
    struct tls_end end = {link->tls->module, link->session, link->fd};
    link->stream = tls_stream_create(link->loop, &end, &local_fd, stream_ended, link, &err);
    if (link->stream == NULL) {
        fail(link, err.text);
        return;
    }
    link->session = NULL;
    link->fd = -1; /* the stream's */
    link->frames = link_create(link->loop, local_fd, local_fd, &ops, link, &err);
    if (link->frames == NULL) {
        fd_close(&local_fd);
        fail(link, err.text);
        return;
    }
    if (link->ops->open != NULL)
        link->ops->open(link->context, link);
}

/* Before */

static void shake(struct tree_link *link)
{
    const struct tls_module *module = link->tls->module;
    switch (module->advance(link->session)) {
    case TLS_HANDSHAKE:
        loop_fd_watch(link->watch, module->wants(link->session, TLS_SHAKING));
        return;
    case TLS_OPEN: come_in(link); return;
    case TLS_FAILED: break;
    }
    fail(link, module->problem(link->session));
}

static void begin(struct tree_link *link)
{
    struct error err = ERROR_INIT;
    link->session = link->tls->module->create(link->tls->party, link->fd, &err);
    if (link->session == NULL)
        fail(link, err.text);
    else
        shake(link);
}

static void ready(void *context, int what)
{
    struct tree_link *link = context;
    char why[160];
    (void)what;
    if (link->session != NULL) {
        shake(link);
        return;
    }
    int errnum = fd_connect_errno(link->fd);
    if (errnum != 0)
        fail(link, strerror_r(errnum, why, sizeof(why)));
    else
        begin(link);
}

static void limit_over(void *context)
{
    fail(context, "it does not answer");
}

struct tree_link *tree_link_answer(struct loop *loop, int fd, const struct tree_tls *tls,
                                   int64_t dead_after_ms, const struct tree_link_ops *ops,
                                   void *context)
{
    struct tree_link *link = MEM_NEW(
        (struct tree_link){.loop = loop, .fd = fd, .tls = tls, .ops = ops, .context = context});
    tcp_options_set(fd, dead_after_ms);
    link->watch = loop_fd_create(loop, fd, ready, link);
    link->limit = loop_timer_create(loop, limit_over, link);
    loop_timer_set(link->limit, TREE_LINK_LIMIT_MS);
    loop_fd_watch(link->watch, LOOP_WRITE);
    return link;
}

struct tree_link *tree_link_call(struct loop *loop, const struct socket_address *to,
                                 const struct tree_tls *tls, int64_t dead_after_ms,
                                 const struct tree_link_ops *ops, void *context, struct error *err)
{
    int fd = socket(to->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        error_errno(err, errno, "cannot open a socket");
        return NULL;
    }
    if (connect(fd, (const struct sockaddr *)&to->at, to->length) < 0 && errno != EINPROGRESS) {
        error_errno(err, errno, "cannot connect");
        fd_close(&fd);
        return NULL;
    }
    return tree_link_answer(loop, fd, tls, dead_after_ms, ops, context);
}
