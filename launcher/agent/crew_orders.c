/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_orders.h"

void crew_orders_start(struct crew *crew, const struct frame_header *header, const uint8_t *body)
{
    Hvdrun__Start *message = hvdrun__start__unpack(NULL, header->length, body);
    if (message == NULL)
        return;
    crew_start(crew, message);
    hvdrun__start__free_unpacked(message, NULL);
}

void crew_orders_stdin(struct crew *crew, const struct frame_header *header, const uint8_t *body)
{
    struct frame_data data;
    if (frame_data_get(body, header->length, &data, NULL) == 0)
        crew_input(crew, &data, body + FRAME_DATA_PREFIX, header->length - FRAME_DATA_PREFIX);
}

void crew_orders_end_worker(struct crew *crew, const struct frame_header *header,
                            const uint8_t *body)
{
    Hvdrun__EndWorker *message = hvdrun__end_worker__unpack(NULL, header->length, body);
    if (message == NULL)
        return;
    crew_end_worker(crew, message->seat, message->signal, message->grace_ms);
    hvdrun__end_worker__free_unpacked(message, NULL);
}

void crew_orders_mpi(struct crew *crew, const struct frame_header *header, const uint8_t *body)
{
    crew_mpi_frame(crew, header->type, body, header->length);
}

void crew_orders_signal(struct crews *crews, const struct frame_header *header, const uint8_t *body)
{
    Hvdrun__Signal *message = hvdrun__signal__unpack(NULL, header->length, body);
    if (message == NULL)
        return;
    struct crew *crew = message->n_seats > 0 ? crews_find(crews, header->epoch) : NULL;
    if (message->n_seats == 0)
        crews_signal(crews, message->signal);
    for (size_t i = 0; crew != NULL && i < message->n_seats; i++)
        crew_signal_seat(crew, message->seats[i], message->signal);
    hvdrun__signal__free_unpacked(message, NULL);
}

void crew_orders_window(struct crews *crews, const struct frame_header *header, const uint8_t *body)
{
    Hvdrun__WindowSize *message = hvdrun__window_size__unpack(NULL, header->length, body);
    if (message == NULL)
        return;
    crews_resize(crews, (int)message->rows, (int)message->columns);
    hvdrun__window_size__free_unpacked(message, NULL);
}
