/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/node_link.h"

#include <netdb.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "io/loop.h"
#include "model/exit/record.h"
#include "model/exit/signal_name.h"
#include "transport/dial.h"
#include "transport/transport.h"
#include "wire/control.pb-c.h"

/* Why the link to an agent has ended, as text for the user. Pure. */

/* The limits that a shell sets and that end a process with a signal of their own. */
static const char *limit_of(int signal)
{
    switch (signal) {
    case SIGXFSZ: return " (the limit of ulimit -f)";
    case SIGXCPU: return " (the limit of ulimit -t)";
    default: return "";
    }
}

/* By the wait status of its process, from waitpid(2). Appends nothing after an exit with 0. */
static void node_end_of_exit(int wait_status, struct buf *out)
{
    if (WIFSIGNALED(wait_status)) {
        buf_puts(out, "its agent was killed by ");
        exit_signal_name(WTERMSIG(wait_status), out);
        buf_puts(out, limit_of(WTERMSIG(wait_status)));
    } else if (WEXITSTATUS(wait_status) != 0) {
        buf_puts(out, "its agent ended with ");
        status_text(WEXITSTATUS(wait_status), out);
    }
}

/* By the agent's last frame. `stall_ms`: how long the driver stood still just before; 0: not. */
static void node_end_of_farewell(const Hvdrun__Farewell *message, int64_t stall_ms, struct buf *out)
{
    double silence = message->silence_ms / 1000.0;
    if (stall_ms > 0 && stall_ms >= message->silence_ms / 2)
        buf_printf(out,
                   "hvdrun itself stood still for %.1f s, and its agent there gave up after %.1f s "
                   "(--node-timeout)",
                   (double)stall_ms / 1000, silence);
    else
        buf_printf(out,
                   "its agent gave up, since it heard nothing from hvdrun for %.1f s "
                   "(--node-timeout)",
                   silence);
}

/* For the exit of a process whose stream has ended, on a busy machine. */
#define LAST_WORDS_MS 2000

const char *node_state_name(enum node_state state)
{
    static const char *const names[] = {
#define NODE_STATE_NAME(name, text) [name] = (text),
        NODE_STATE_LIST(NODE_STATE_NAME)
#undef NODE_STATE_NAME
    };
    return names[state];
}

static void forget_end(struct node_link *node)
{
    loop_timer_destroy(node->last_words);
    node->last_words = NULL;
    mem_free_at(&node->lost_why);
    mem_free_at(&node->end_reason);
}

static void close_link(struct node_link *node)
{
    loop_timer_destroy(node->last_words);
    node->last_words = NULL;
    dial_cancel(node->look);
    node->look = NULL;
    loop_timer_destroy(node->tick);
    node->tick = NULL;
    link_destroy(node->link);
    node->link = NULL;
    credit_release(&node->credit);
}

void node_link_give_up(struct node_link *node, const char *why)
{
    if (node->state >= NODE_GONE)
        return;
    node->state = node->state == NODE_CLOSING ? NODE_GONE : NODE_LOST;
    close_link(node);
    node->ops->closed(node->context, node, why);
}

/* The link has ended, and what can be known about it is. */
static void end_explained(void *context)
{
    struct node_link *node = context;
    AUTO_FREE char *why = mem_strdup(node->lost_why != NULL ? node->lost_why : node->end_reason);
    forget_end(node);
    node_link_give_up(node, why);
}

/* The kernel closes the descriptors of a process before it reports its exit, so the end of the link
 * comes first. The exit knows more: it is awaited for a moment. */
static void link_closed(void *context, const char *reason)
{
    struct node_link *node = context;
    node->ended_ns = clock_mono_ns();
    node->end_reason = mem_strdup(reason == NULL ? "the connection to its agent ended" : reason);
    if (node->stream.pid <= 0 || node->lost_why != NULL || node->state >= NODE_CLOSING) {
        end_explained(node);
        return;
    }
    loop_timer_clear(node->tick);
    node->last_words = loop_timer_create(node->loop, end_explained, node);
    loop_timer_set(node->last_words, LAST_WORDS_MS);
}

void node_link_explain(struct node_link *node, const char *why)
{
    mem_replace(&node->lost_why, why);
}

void node_link_exited(struct node_link *node, int wait_status)
{
    AUTO_BUF struct buf why = BUF_INIT(128);
    node->stream.pid = 0; /* from now on another process may have this number */
    node_end_of_exit(wait_status, &why);
    if (why.length > 0 && node->lost_why == NULL)
        node_link_explain(node, buf_text(&why));
    if (node->last_words != NULL)
        end_explained(node);
}

void node_link_unreached(struct node_link *node)
{
    if (node->state > NODE_ENDING || node->hello != NULL)
        return;
    if (node->link != NULL)
        close_link(node);
    node->state = NODE_UNREACHED;
}

/* Once the end has begun the clocks are frozen, so that the exits of a node keep their order
 * among each other and relative to our kills. */
static void on_heartbeat_reply(struct node_link *node, const Hvdrun__Heartbeat *beat)
{
    node->answered_ns = (int64_t)beat->sent_ns;
    if (!node->same_clock && node->state < NODE_ENDING)
        clock_offset_sample(&node->clock, (int64_t)beat->sent_ns, (int64_t)beat->reply_ns,
                            clock_mono_ns());
}

static void send_heartbeat(struct node_link *node)
{
    Hvdrun__Heartbeat beat = HVDRUN__HEARTBEAT__INIT;
    beat.sent_ns = (uint64_t)clock_mono_ns();
    node_link_send(node, FRAME_HEARTBEAT, 0, &beat.base);
}

static void on_heartbeat(struct node_link *node, enum frame_type type, const uint8_t *body,
                         size_t length)
{
    Hvdrun__Heartbeat *beat = hvdrun__heartbeat__unpack(NULL, length, body);
    if (beat == NULL)
        return;
    node->alive_ns = type == FRAME_HEARTBEAT_REPLY ? beat->reply_ns : beat->sent_ns;
    if (type == FRAME_HEARTBEAT_REPLY) {
        on_heartbeat_reply(node, beat);
    } else {
        beat->reply_ns = (uint64_t)clock_mono_ns();
        node_link_send(node, FRAME_HEARTBEAT_REPLY, 0, &beat->base);
    }
    hvdrun__heartbeat__free_unpacked(beat, NULL);
}

static void on_log(struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Log *message = hvdrun__log__unpack(NULL, length, body);
    if (message != NULL && message->level <= LOG_DEBUG)
        log_print(node->log, (enum log_level)message->level, "%s: %s", node->host, message->text);
    if (message != NULL)
        hvdrun__log__free_unpacked(message, NULL);
}

/* The agent knows that it gave us up, and we know whether we stood still. */
static void on_farewell(struct node_link *node, const uint8_t *body, size_t length)
{
    AUTO_BUF struct buf why = BUF_INIT(1024);
    Hvdrun__Farewell *message = hvdrun__farewell__unpack(NULL, length, body);
    if (message == NULL) {
        node_link_give_up(node, "its agent broke the protocol");
        return;
    }
    node->ended_ns = clock_mono_ns();
    node_end_of_farewell(message, liveness_stall_ms(&node->liveness, clock_mono_ms()), &why);
    hvdrun__farewell__free_unpacked(message, NULL);
    node_link_give_up(node, buf_text(&why));
}

/* Takes the agent's facts. -1: the node was given up. */
static int on_hello(struct node_link *node, const uint8_t *body, size_t length)
{
    if (node->hello != NULL) {
        node_link_give_up(node, "its agent sent HELLO twice");
        return -1;
    }
    node->hello = hvdrun__agent_hello__unpack(NULL, length, body);
    if (node->hello == NULL) {
        node_link_give_up(node, "cannot decode the HELLO of its agent");
        return -1;
    }
    node->same_clock = node->stream.same_machine;
    node->liveness.lost_ms = node->timeout_ms;
    if (node->state == NODE_STARTING) /* otherwise the end of the job has overtaken HELLO */
        node->state = NODE_UP;
    send_heartbeat(node);
    return 0;
}

static void link_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct node_link *node = context;
    liveness_heard(&node->liveness, clock_mono_ms());
    if (node->suspect) {
        node->suspect = false;
        node->ops->suspect(node->context, node, false, 0);
    }
    switch (header->type) {
    case FRAME_HEARTBEAT:
    case FRAME_HEARTBEAT_REPLY: on_heartbeat(node, header->type, body, header->length); return;
    case FRAME_LOG: on_log(node, body, header->length); return;
    case FRAME_FAREWELL: on_farewell(node, body, header->length); return;
    case FRAME_HELLO:
        if (on_hello(node, body, header->length) < 0)
            return;
        break;
    default: break;
    }
    node->ops->frame(node->context, node, header, body);
}

/*
 * A second look at a host whose agent has gone silent: does the host still answer? It opens new
 * connections to the address that the transport used, several times within half of the limit, and
 * closes them. On a lossy link a new handshake succeeds long before a stream that must repeat its
 * segments in order.
 */

#define TRIES 3 /* attempts start one after the other, and one success is enough */

/* In this silence: the next one begins when the peer has been heard. */
static bool has_looked(const struct node_link *node)
{
    return node->looked_ms == node->liveness.heard_ms;
}

static void dialed(void *context, const struct dial_result *result)
{
    struct node_link *node = context;
    node->look = NULL;
    if (result->fd < 0)
        return;
    close(result->fd);
    if (has_looked(node))
        liveness_host_answers(&node->liveness);
}

/* The transport has named a host and its port. */
static bool has_address(const struct node_link *node)
{
    return node->stream.peer[0] != '\0' && node->stream.peer_port != 0;
}

/* Once in a silence. Does nothing if there is no numeric address to connect to. */
static void look(struct node_link *node)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct resolve_result peers = {.count = TRIES};
    int64_t limit_ms = node->liveness.lost_ms / 2;
    node->looked_ms = node->liveness.heard_ms;
    if (!has_address(node) || getaddrinfo(node->stream.peer, NULL, &hints, &found) != 0)
        return;
    for (size_t i = 0; i < TRIES; i++)
        memcpy(&peers.addresses[i], found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    dial_cancel(node->look); /* of an earlier silence */
    node->look =
        dial_start(node->loop, &peers, node->stream.peer_port, limit_ms, limit_ms, dialed, node);
}

/* Starts the second look after half of the time limit. This machine needs none: it answers. An
 * agent that starts has time enough. */
static void look_again(struct node_link *node, int64_t silence_ms)
{
    bool due = silence_ms >= node->liveness.lost_ms / 2;
    if (!node->doubted || node->hello == NULL)
        return;
    if (node->stream.same_machine && (due || silence_ms >= node->liveness.suspect_ms))
        liveness_host_answers(&node->liveness);
    else if (due && !has_looked(node))
        look(node);
}

static void on_tick(void *context)
{
    struct node_link *node = context;
    int64_t now = clock_mono_ms();
    /* many links may be ready at once, and one turn of the loop does not read them all */
    if (liveness_wants_bytes(&node->liveness, now) && link_has_come(node->link))
        liveness_bytes_wait(&node->liveness, now);
    look_again(node, liveness_silence_ms(&node->liveness, now));
    enum liveness_state state = liveness_tick(&node->liveness, now);
    int64_t silence = liveness_silence_ms(&node->liveness, now);
    if (state == LIVENESS_LOST) {
        char why[64];
        snprintf(why, sizeof(why), "no heartbeat for %.1f s", (double)silence / 1000);
        node_link_give_up(node, why);
        return;
    }
    if (state == LIVENESS_SUSPECT && !node->suspect && node->hello != NULL) {
        node->suspect = true;
        node->ops->suspect(node->context, node, true, silence);
    }
    send_heartbeat(node);
    loop_timer_set(node->tick, liveness_next_ms(&node->liveness, now));
}

void node_link_init(struct node_link *node, struct loop *loop, int64_t node_timeout_ms,
                    const struct log *log, const struct node_link_ops *ops, void *context)
{
    node->loop = loop;
    node->log = log;
    node->ops = ops;
    node->context = context;
    node->clock = (struct clock_offset){.measured = false};
    node->stream = (struct transport_stream){.read_fd = -1, .write_fd = -1};
    node->timeout_ms = node_timeout_ms;
    liveness_init(&node->liveness, LIVENESS_SUSPECT_MS, node_timeout_ms, clock_mono_ms());
}

/* An agent that starts sends no heartbeat, and waits as long for the driver. */
#define HELLO_MS 30000

int node_link_connect(struct node_link *node, const struct transport_stream *stream,
                      struct error *err)
{
    static const struct link_ops link_ops = {.frame = link_frame, .closed = link_closed};
    node->link = link_create(node->loop, stream->read_fd, stream->write_fd, &link_ops, node, err);
    if (node->link == NULL)
        return -1;
    node->stream = *stream;
    node->state = NODE_STARTING;
    node->stage = STAGE_AGENT;
    link_set_node(node->link, (uint32_t)node->index);
    liveness_init(&node->liveness, LIVENESS_SUSPECT_MS, node->timeout_ms, clock_mono_ms());
    if (node->liveness.lost_ms < HELLO_MS)
        node->liveness.lost_ms = HELLO_MS;
    node->tick = loop_timer_create(node->loop, on_tick, node);
    loop_timer_set(node->tick, LIVENESS_PERIOD_MS);
    return 0;
}

static void forget_agent(struct node_link *node)
{
    forget_end(node);
    node->ended_ns = 0;
    if (node->hello != NULL)
        hvdrun__agent_hello__free_unpacked(node->hello, NULL);
    node->hello = NULL;
}

void node_link_renew(struct node_link *node)
{
    forget_agent(node);
    node->state = NODE_CALLING;
    node->stage = STAGE_WAITING;
    memset(node->stage_ns, 0, sizeof(node->stage_ns));
    node->hello_ns = node->ready_ns = node->killed_ns = 0;
    node->alive_ns = 0;
    node->suspect = node->same_clock = false;
    node->lines_epoch = 0;
    node->suspends = 0;
}

void node_link_destroy(struct node_link *node)
{
    if (node == NULL)
        return;
    dial_cancel(node->look);
    loop_timer_destroy(node->tick);
    link_destroy(node->link);
    forget_agent(node);
    free(node->unkilled);
    free(node->host);
    free(node);
}

bool node_link_alive(const struct node_link *node)
{
    return node->link != NULL;
}

void node_link_send(struct node_link *node, enum frame_type type, uint32_t epoch,
                    const ProtobufCMessage *message)
{
    if (node->link == NULL)
        return;
    if (message == NULL)
        link_send(node->link, type, epoch, NULL, 0);
    else
        link_send_message(node->link, type, epoch, message);
}

void node_link_send_shared(struct node_link *node, enum frame_type type, uint32_t epoch,
                           const ProtobufCMessage *message, unsigned field,
                           struct shared_block *block)
{
    if (node->link != NULL)
        link_send_shared(node->link, type, epoch, message, field, block);
}

void node_link_send_pieces(struct node_link *node, enum frame_type type, uint32_t epoch,
                           const ProtobufCMessage *message, unsigned field,
                           struct shared_block *block)
{
    const struct node_detour *detour = node->detour;
    if (node->link != NULL && (detour == NULL || !detour->take(detour->context, node, type, epoch,
                                                               message, field, block)))
        link_send_pieces(node->link, type, epoch, message, field, block);
}

void node_link_drop_pieces(struct node_link *node, uint32_t epoch)
{
    if (node->link != NULL)
        link_drop_pieces(node->link, epoch);
}

bool node_link_takes(const struct node_link *node, size_t length)
{
    const struct node_detour *detour = node->detour;
    return node->link != NULL && (detour == NULL ? link_takes(node->link, length)
                                                 : detour->takes(detour->context, node, length));
}

bool node_link_may_answer(const struct node_link *node)
{
    return node->doubted && !node->liveness.host_answers && has_address(node);
}

void node_link_suspend(struct node_link *node, bool suspended)
{
    liveness_suspend(&node->liveness, suspended, clock_mono_ms());
}

/* Peers may notice the end of a host before we do, and we read what its agent has sent later than
 * it was sent. Only the agent's own times tell how long it lived. */
struct exit_loss node_link_loss(const struct node_link *node)
{
    int64_t now = clock_mono_ns();
    struct exit_loss loss = {
        .alive_ns = node->alive_ns != 0 ? node_link_time(node, node->alive_ns) : INT64_MIN,
        .uncertainty_ns = node_link_uncertainty(node),
        .by_ns = node->ended_ns,
        .silent = liveness_silence_ms(&node->liveness, now / 1000000) >= node->liveness.suspect_ms};
    if (loss.silent)
        loss.by_ns = (node->liveness.heard_ms + 2 * LIVENESS_PERIOD_MS) * 1000000;
    else if (node->ended_ns == 0)
        loss.alive_ns = loss.by_ns = now; /* it was we who closed the connection */
    return loss;
}

int64_t node_link_time(const struct node_link *node, uint64_t agent_ns)
{
    return clock_offset_to_ours(&node->clock, (int64_t)agent_ns);
}

int64_t node_link_uncertainty(const struct node_link *node)
{
    return node->same_clock ? 0 : clock_offset_error(&node->clock, clock_mono_ns());
}
