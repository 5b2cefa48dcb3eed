/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/orders.h"

static void on_start(struct crew *crew, const uint8_t *body, size_t length)
{
    Hvdrun__Start *message = hvdrun__start__unpack(NULL, length, body);
    if (message == NULL)
        return;
    crew_start(crew, message);
    hvdrun__start__free_unpacked(message, NULL);
}

static void on_stdin(struct crew *crew, const uint8_t *body, size_t length)
{
    struct frame_data data;
    if (frame_data_get(body, (uint32_t)length, &data, NULL) == 0)
        crew_input(crew, &data, body + FRAME_DATA_PREFIX, length - FRAME_DATA_PREFIX);
}

static void on_end_worker(struct crew *crew, const uint8_t *body, size_t length)
{
    Hvdrun__EndWorker *message = hvdrun__end_worker__unpack(NULL, length, body);
    if (message == NULL)
        return;
    crew_end_worker(crew, message->seat, message->signal, message->grace_ms);
    hvdrun__end_worker__free_unpacked(message, NULL);
}

static void on_signal(struct crews *crews, const uint8_t *body, size_t length)
{
    Hvdrun__Signal *message = hvdrun__signal__unpack(NULL, length, body);
    if (message == NULL)
        return;
    crews_signal(crews, message->signal);
    hvdrun__signal__free_unpacked(message, NULL);
}

static void on_window(struct crews *crews, const uint8_t *body, size_t length)
{
    Hvdrun__WindowSize *message = hvdrun__window_size__unpack(NULL, length, body);
    if (message == NULL)
        return;
    crews_resize(crews, (int)message->rows, (int)message->columns);
    hvdrun__window_size__free_unpacked(message, NULL);
}

static void crew_frame(struct crew *crew, uint8_t type, const uint8_t *body, size_t length)
{
    switch (type) {
    case FRAME_START: on_start(crew, body, length); break;
    case FRAME_STDIN: on_stdin(crew, body, length); break;
    case FRAME_END_WORKER: on_end_worker(crew, body, length); break;
    default: crew_mpi_frame(crew, type, body, length); break; /* the MPI_* ones */
    }
}

void orders_frame(struct crews *crews, const struct post *post, const struct frame_header *header,
                  const uint8_t *body)
{
    struct crew *crew = crews_find(crews, header->epoch);
    switch (header->type) {
    case FRAME_CANCEL: crews_cancel(crews, header->epoch); break;
    case FRAME_SIGNAL: on_signal(crews, body, header->length); break;
    case FRAME_WINDOW_SIZE: on_window(crews, body, header->length); break;
    case FRAME_STATE_REQUEST: crews_report_states(crews, post); break;
    default:
        if (crew != NULL)
            crew_frame(crew, header->type, body, header->length);
        break;
    }
}
