/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of /proc about processes and the machine. The name of a process is its own choice. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "model/usage/proc_text.h"

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    struct proc_stat stat;
    struct proc_io io;
    struct proc_pressure pressure;
    struct proc_memory memory;
    double load;
    if (proc_stat_read(text, &stat) == 0)
        FUZZ_CHECK(strchr(text, ')') != NULL && stat.parent >= 0 && stat.session >= 0);
    if (proc_io_read(text, &io) == 0)
        FUZZ_CHECK(strstr(text, "rchar:") != NULL);
    if (proc_pressure_read(text, &pressure) == 0)
        FUZZ_CHECK(isfinite(pressure.some_percent) && pressure.some_percent >= 0 &&
                   isfinite(pressure.full_percent) && pressure.full_percent >= 0);
    if (proc_memory_read(text, &memory) == 0)
        FUZZ_CHECK(memory.total_bytes % 1024 == 0);
    if (proc_load_read(text, &load) == 0)
        FUZZ_CHECK(isfinite(load) && load >= 0);
    return 0;
}
