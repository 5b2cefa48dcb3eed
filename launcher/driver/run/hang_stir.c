/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/hang_stir.h"

#include <stdlib.h>

#include "base/mem.h"

#define LATE_SAMPLES 2 /* the answers lag behind, and so does the output */

struct number {
    uint64_t last, hidden;
};

struct seat_stir {
    struct number output, io_bytes, cpu_us, faults, waits, main_ns, receptions;
    int late;
};

struct hang_stir {
    struct seat_stir *seats;
    int count;
    bool asks;
};

struct hang_stir *hang_stir_create(void)
{
    struct hang_stir *stir = mem_alloc(sizeof(*stir));
    *stir = (struct hang_stir){.count = 0};
    return stir;
}

void hang_stir_destroy(struct hang_stir *stir)
{
    if (stir == NULL)
        return;
    free(stir->seats);
    free(stir);
}

void hang_stir_asks(struct hang_stir *stir, bool asks)
{
    stir->asks = asks;
    for (int i = 0; asks && i < stir->count; i++)
        stir->seats[i].late = LATE_SAMPLES;
}

static void take(struct number *number, bool hide, uint64_t *value)
{
    if (*value < number->last) /* another worker has the seat */
        number->hidden = 0;
    else if (hide)
        number->hidden += *value - number->last;
    number->last = *value;
    *value -= number->hidden;
}

void hang_stir_take(struct hang_stir *stir, int seat, struct hang_sample *sample)
{
    while (stir->count <= seat) {
        stir->seats = mem_resize_array(stir->seats, (size_t)stir->count + 1, sizeof(*stir->seats));
        stir->seats[stir->count++] = (struct seat_stir){.late = 0};
    }
    struct seat_stir *its = &stir->seats[seat];
    bool hide = stir->asks || its->late > 0;
    if (!stir->asks && its->late > 0)
        its->late--;
    take(&its->output, hide, &sample->output);
    take(&its->io_bytes, hide, &sample->io_bytes);
    take(&its->cpu_us, hide, &sample->cpu_us);
    take(&its->faults, hide, &sample->faults);
    take(&its->waits, hide, &sample->waits);
    take(&its->main_ns, hide, &sample->main_ns);
    take(&its->receptions, hide, &sample->receptions);
    sample->has_gpu = sample->has_gpu && !hide;
}
