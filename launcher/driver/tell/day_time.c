/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/day_time.h"

#include <stdio.h>
#include <time.h>

void day_time_text(int64_t wall_ns, char *out)
{
    time_t when = (time_t)(wall_ns / 1000000000);
    struct tm parts;
    if (localtime_r(&when, &parts) == NULL || strftime(out, DAY_TIME_SIZE, "%H:%M:%S", &parts) == 0)
        snprintf(out, DAY_TIME_SIZE, "?");
}
