/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_orders.h"

void crew_orders_start(struct crew *crew, const struct frame_header *header, const void *body)
{
    (void)header;
    crew_start(crew, body);
}

void crew_orders_stdin(struct crew *crew, const struct frame_header *header, const void *body)
{
    struct frame_data data;
    if (frame_data_get(body, header->length, &data, NULL) == 0)
        crew_input(crew, &data, (const uint8_t *)body + FRAME_DATA_PREFIX,
                   header->length - FRAME_DATA_PREFIX);
}

void crew_orders_end_worker(struct crew *crew, const struct frame_header *header, const void *body)
{
    const Hvdrun__EndWorker *message = body;
    (void)header;
    crew_end_worker(crew, message->seat, message->signal, message->grace_ms);
}

void crew_orders_mpi(struct crew *crew, const struct frame_header *header, const void *body)
{
    crew_mpi_frame(crew, header->type, body);
}

void crew_orders_signal(struct crews *crews, const struct frame_header *header, const void *body)
{
    const Hvdrun__Signal *message = body;
    struct crew *crew = message->n_seats > 0 ? crews_find(crews, header->epoch) : NULL;
    if (message->n_seats == 0)
        crews_signal(crews, message->signal);
    for (size_t i = 0; crew != NULL && i < message->n_seats; i++)
        crew_signal_seat(crew, message->seats[i], message->signal);
}

void crew_orders_window(struct crews *crews, const struct frame_header *header, const void *body)
{
    const Hvdrun__WindowSize *message = body;
    (void)header;
    crews_resize(crews, (int)message->rows, (int)message->columns);
}
