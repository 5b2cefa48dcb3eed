/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/collect.h"

#include "base/clock.h"
#include "driver/exits.h"

int collect_bytes(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    struct frame_data data;
    struct error err = ERROR_INIT;
    if (frame_data_get(body, (uint32_t)length, &data, &err) < 0 ||
        !exits_rank_of(job, node, data.rank) || data.stream == 0)
        return -1;
    enum output_stream stream = data.stream == 1 ? OUTPUT_STDOUT : OUTPUT_STDERR;
    if (length == FRAME_DATA_PREFIX) {
        output_end(job->output, (int)data.rank, stream);
        return 0;
    }
    size_t bytes = length - FRAME_DATA_PREFIX;
    if (!credit_received(&node->credit, bytes))
        return -1;
    int64_t age = clock_mono_ns() - node_link_time(node, data.when_ns);
    int64_t wall = clock_wall_ns() - (age > 0 ? age : 0);
    output_bytes(job->output, (int)data.rank, stream, body + FRAME_DATA_PREFIX, bytes, wall);
    return 0;
}

void collect_consumed(struct job *job, int rank, size_t bytes)
{
    struct node_link *node = &job->nodes[job->plan->ranks[rank].node];
    if (!node_link_alive(node) || !credit_consumed(&node->credit, bytes))
        return;
    Hvdrun__Credit message = HVDRUN__CREDIT__INIT;
    message.bytes = node->credit.granted;
    node_link_send(node, FRAME_OUTPUT_CREDIT, 0, &message.base);
}
