/* SPDX-License-Identifier: Apache-2.0 */
/* What Slurm says: a compressed node list, counts for its nodes, and behind them what `scontrol
 * show job -o` prints. */
#include "base/parse.h"
#include "base/strv.h"
#include "fuzz.h"
#include "model/allocation/slurm.h"
#include "model/allocation/slurm_test.h"

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *list AUTO_FREE = fuzz_line(&bytes), *counts AUTO_FREE = fuzz_line(&bytes);
    char *job AUTO_FREE = fuzz_text(bytes.at, bytes.left);
    AUTO_STRV struct strv names = STRV_INIT;
    struct error err = ERROR_INIT;
    struct slurm_job told;
    int result = slurm_nodelist_parse(list, &names, &err);
    fuzz_check_error(result, &err);
    for (size_t i = 0; i < names.count; i++)
        FUZZ_CHECK(name_is_safe(names.items[i], strlen(names.items[i])));
    size_t nodes = result == 0 && names.count < 1000 ? names.count : 3;
    int *out AUTO_FREE = mem_array(nodes + 1, sizeof(*out));
    result = slurm_counts_parse(counts, out, nodes, &err);
    fuzz_check_error(result, &err);
    for (size_t i = 0; i < nodes && result == 0; i++)
        FUZZ_CHECK(out[i] >= 1 && out[i] <= SLURM_COUNT_MAX);
    result = slurm_job_parse(job, bytes.left, &told, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(result < 0 || told.end_s >= 0);
    if (result == 0)
        slurm_job_is_ousted(&told);
    return 0;
}
