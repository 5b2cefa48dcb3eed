/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/mpi/mpi.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/part.h"
#include "driver/mpi/rounds.h"

#define WAITING_BYTES_MAX ((size_t)256 << 20)

/* Often enough for a timely warning, late enough that every rank which still joins has joined. */
#define LOOK_MS 2000

/* The numbers of MpiCollected.data and MpiModexData.data in control.proto. */
#define MPI_COLLECTED_DATA 4
#define MPI_MODEX_DATA_DATA 4

struct job_mpi {
    struct mpi_rounds *rounds; /* of the present epoch; made when the first step is entered */
    struct mpi_names *names;   /* likewise at the first request */
    struct mpi_asks asks;      /* likewise */
    struct loop_timer *look;
    bool warned;
};

static void round_answer(void *context, int node, const struct mpi_answer *answer)
{
    const struct job *job = context;
    Hvdrun__MpiCollected message = HVDRUN__MPI_COLLECTED__INIT;
    message.token = answer->token;
    message.problem = (char *)(answer->problem == NULL ? "" : answer->problem);
    message.round = answer->round;
    message.pmi1 = answer->pmi1;
    message.expanded = answer->expanded;
    node_link_send_pieces(job->places[node], FRAME_MPI_COLLECTED, answer->epoch, &message.base,
                          MPI_COLLECTED_DATA, answer->data);
}

static bool is_gone(void *context, int rank)
{
    const struct job *job = context;
    int seat = job_rank_seat(job, rank);
    return seat >= 0 && job->ranks.records[seat].state >= RANK_EXITED;
}

/* A rank that exited with 0 ends nothing, but MPI does not notify the ranks that wait for it. */
static void look_for_stuck(void *context)
{
    struct job *job = context;
    struct job_mpi *part = job_part(job, job_mpi);
    int node = 0;
    int rank = 0;
    if (job->state != JOB_RUNNING || part->warned || mpi_rounds_pending(part->rounds) == 0)
        return;
    if (mpi_rounds_stuck(part->rounds, is_gone, job, &node, &rank)) {
        part->warned = true;
        log_warning(&job->log,
                    "rank %d on %s has exited, but MPI ranks on %s wait for it: the job may hang",
                    rank, job_seat_host(job, job_rank_seat(job, rank)),
                    job->plan->nodes[node].name);
        return;
    }
    loop_timer_set(part->look, LOOK_MS);
}

/* It can be used again, as at its start. */
static void clear(struct job_mpi *part)
{
    mpi_rounds_destroy(part->rounds);
    part->rounds = NULL;
    mpi_names_destroy(part->names); /* its ranks published for themselves */
    part->names = NULL;
    mpi_asks_clear(&part->asks);
}

void job_mpi_end_epoch(struct job *job)
{
    struct job_mpi *part = job_part(job, job_mpi);
    clear(part);
    for (int i = 0; i < job->node_count; i++)
        node_link_drop_pieces(job->nodes[i], job->epoch);
    part->warned = false;
    if (part->look != NULL)
        loop_timer_clear(part->look);
}

static void close_part(struct job *job)
{
    loop_timer_destroy(job_part(job, job_mpi)->look);
    clear(job_part(job, job_mpi));
}

/* All ranks of a world that was spawned: the seats of its epoch. The caller frees them. */
static uint32_t *ranks_of_world(const struct job *job, uint32_t epoch, size_t *count)
{
    uint32_t *ranks = mem_array((size_t)job->ranks.size + 1, sizeof(*ranks));
    *count = 0;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].epoch == epoch)
            ranks[(*count)++] = (uint32_t)seat;
    }
    return ranks;
}

static void open_rounds(struct job *job)
{
    struct job_mpi *part = job_part(job, job_mpi);
    if (part->rounds != NULL)
        return;
    if (part->look == NULL)
        part->look = loop_timer_create(job->loop, look_for_stuck, job);
    int64_t direct = job->settings->mpi_direct;
    struct mpi_limits limits = {.round = FRAME_MPI_DATA_MAX,
                                .all = WAITING_BYTES_MAX,
                                .shrink = (size_t)job->settings->mpi_compress << 10,
                                .demand = direct < 0 ? SIZE_MAX : (size_t)direct << 20};
    part->rounds = mpi_rounds_create(job->plan, &limits, round_answer, job);
    for (int i = 0; i < job->plan->node_count; i++) {
        if (!node_link_alive(job->places[i]))
            mpi_rounds_node_lost(part->rounds, i);
    }
    PARTS_TELL(job, steps_begin);
}

void job_mpi_grow(struct job *job, const struct plan *plan)
{
    open_rounds(job);
    mpi_rounds_grow(job_part(job, job_mpi)->rounds, plan);
}

static int take_collect(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct job_mpi *part = job_part(job, job_mpi);
    const Hvdrun__MpiCollect *message = frame->message;
    open_rounds(job);
    bool waiting = mpi_rounds_pending(part->rounds) > 0;
    bool of_world = message->n_ranks == 0 && frame->epoch != job->epoch;
    size_t count = message->n_ranks;
    uint32_t *all AUTO_FREE = of_world ? ranks_of_world(job, frame->epoch, &count) : NULL;
    if (of_world && count == 0)
        return -1;
    struct mpi_step step = {.token = message->token,
                            .epoch = frame->epoch,
                            .pmi1 = message->pmi1,
                            .key = message->key,
                            .ranks = of_world ? all : message->ranks,
                            .rank_count = count,
                            .bytes = message->data.data,
                            .length = message->data.len,
                            .on_demand = message->on_demand,
                            .kept = message->kept};
    struct error err = ERROR_INIT;
    enum mpi_join joined = mpi_rounds_join(part->rounds, node->place, &step, &err);
    if (joined == MPI_TOO_MUCH)
        teardown_launcher(job, STATUS_LAUNCHER, err.text);
    if (!waiting && mpi_rounds_pending(part->rounds) > 0)
        loop_timer_set(part->look, LOOK_MS);
    return joined == MPI_NONSENSE ? -1 : 0;
}

/* NULL: nothing was found. */
static void answer_modex(const struct job *job, const struct mpi_asker *asker,
                         struct shared_block *data)
{
    struct node_link *node = job->places[asker->node];
    Hvdrun__MpiModexData answer = HVDRUN__MPI_MODEX_DATA__INIT;
    answer.token = asker->token;
    answer.node = (uint32_t)asker->node;
    answer.found = data != NULL && node_link_takes(node, data->length);
    if (data != NULL && !answer.found && node_link_alive(node))
        log_warning(&job->log, "%s asks for more data of MPI ranks than the connection takes",
                    node->host);
    if (answer.found)
        node_link_send_pieces(node, FRAME_MPI_MODEX_DATA, asker->epoch, &answer.base,
                              MPI_MODEX_DATA_DATA, data);
    else
        node_link_send(node, FRAME_MPI_MODEX_DATA, asker->epoch, &answer.base);
}

static void refuse_modex(void *context, const struct mpi_asker *asker)
{
    answer_modex(context, asker, NULL);
}

/* Under the epoch of the rank, which its node has as long as it can answer. */
static void ask_modex(const struct job *job, uint32_t rank, uint64_t token)
{
    const struct rank_record *record = &job->ranks.records[rank];
    Hvdrun__MpiModex question = HVDRUN__MPI_MODEX__INIT;
    int owner = job->plan->ranks[rank].node;
    question.token = token;
    question.rank = rank;
    question.node = (uint32_t)owner;
    node_link_send(job->places[owner], FRAME_MPI_MODEX,
                   record->world > 0 ? record->epoch : job->epoch, &question.base);
}

static int take_modex(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct job_mpi *part = job_part(job, job_mpi);
    const Hvdrun__MpiModex *message = frame->message;
    if (message->rank >= (uint32_t)job->plan->size)
        return -1;
    int owner = job->plan->ranks[message->rank].node;
    struct mpi_asker asker = {node->place, frame->epoch, message->token};
    bool known =
        !rank_world_is_over(&job->ranks, (int)message->rank); /* else it has been dropped */
    if (!known || !node_link_alive(job->places[owner]) || mpi_asks_full(&part->asks)) {
        refuse_modex(job, &asker);
        return 0;
    }
    uint64_t token = mpi_asks_add(&part->asks, message->rank, owner, &asker);
    if (token != 0)
        ask_modex(job, message->rank, token);
    return 0;
}

static int take_modex_data(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct job_mpi *part = job_part(job, job_mpi);
    const Hvdrun__MpiModexData *message = frame->message;
    if (message->node != (uint32_t)node->place)
        return -1;
    struct mpi_asked asked = mpi_asks_answered(&part->asks, node->place, message->token);
    struct shared_block *data = message->found ? shared_block_create(message->data.len) : NULL;
    if (data != NULL && data->length > 0)
        memcpy(data->bytes, message->data.data, data->length);
    for (size_t i = 0; i < asked.count; i++)
        answer_modex(job, &asked.askers[i], data);
    if (asked.next != 0)
        ask_modex(job, asked.rank, asked.next);
    shared_block_release(data);
    free(asked.askers);
    return 0;
}

/* Each rank that is ended raises an event. All ranks are ended then, and all events for all nodes
 * would be a square of frames. */
static int take_event(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__MpiEvent *message = frame->message;
    for (int i = 0; i < job->plan->node_count && job->state < JOB_ENDING; i++) {
        if (i != node->place)
            node_link_send(job->places[i], FRAME_MPI_EVENT, frame->epoch, &message->base);
    }
    return 0;
}

static int take_signal(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__MpiSignal *message = frame->message;
    bool every = message->rank < 0;
    for (int i = 0; i < job->plan->node_count && message->rank < job->plan->size; i++) {
        bool wanted = every ? i != node->place : job->plan->ranks[message->rank].node == i;
        if (wanted)
            node_link_send(job->places[i], FRAME_MPI_SIGNAL, frame->epoch, &message->base);
    }
    return 0;
}

static int take_store(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct job_mpi *part = job_part(job, job_mpi);
    if (part->names == NULL)
        part->names = mpi_names_create(job);
    return mpi_names_request(part->names, node, frame->epoch, frame->message);
}

static void node_lost(struct job *job, struct node_link *node)
{
    struct job_mpi *part = job_part(job, job_mpi);
    if (node->place < 0)
        return;
    if (part->rounds != NULL)
        mpi_rounds_node_lost(part->rounds, node->place);
    if (part->names != NULL)
        mpi_names_node_lost(part->names, node->place);
    mpi_asks_node_lost(&part->asks, node->place, refuse_modex, job);
}

/* From a node in the plan. */
#define FRAME(type, take, name)                                                     \
    {                                                                               \
        type,                                                                       \
        {                                                                           \
            take, &hvdrun__##name##__descriptor, EPOCHS_PRESENT, NODE_RUNNING, true \
        }                                                                           \
    }
static const struct part_frame frames[] = {
    FRAME(FRAME_MPI_COLLECT, take_collect, mpi_collect),
    FRAME(FRAME_MPI_MODEX, take_modex, mpi_modex),
    FRAME(FRAME_MPI_MODEX_DATA, take_modex_data, mpi_modex_data),
    FRAME(FRAME_MPI_STORE, take_store, mpi_store),
    FRAME(FRAME_MPI_EVENT, take_event, mpi_event),
    FRAME(FRAME_MPI_SIGNAL, take_signal, mpi_signal),
    {0}};
const struct driver_part job_mpi_part = {.name = "job_mpi",
                                         .size = sizeof(struct job_mpi),
                                         .close = close_part,
                                         .frames = frames,
                                         .node_lost = node_lost};
