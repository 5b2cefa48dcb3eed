/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that uses NCCL answers to a question about its communicators. */
#include "features/hang/ras.h"
#include "fuzz.h"

FUZZ_TARGET
{
    char *bytes AUTO_FREE = mem_alloc(size == 0 ? 1 : size); /* no NUL behind it */
    struct ras_report report;
    struct error err = ERROR_INIT;
    if (size > 0)
        memcpy(bytes, data, size);
    int result = ras_json_read(bytes, size, &report, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(report.count <= RAS_ENTRIES_MAX);
    struct ras_rank *ranks AUTO_FREE = mem_array(report.count + 1, sizeof(*ranks));
    int64_t *launched AUTO_FREE = mem_array(report.count + 1, sizeof(*launched));
    for (size_t i = 0; i < report.count; i++) {
        const struct ras_entry *entry = &report.entries[i];
        FUZZ_CHECK(memchr(entry->host, '\0', sizeof(entry->host)) != NULL);
        for (int j = 0; j < RAS_OPERATIONS; j++)
            FUZZ_CHECK(entry->place.counts[j] >= 0);
        ranks[i] = (struct ras_rank){&entry->place, 1};
    }
    struct ras_finding finding = {.operation = NULL};
    if (report.count < 1000 && ras_find(ranks, report.count, &finding, launched)) {
        bool behind = false;
        for (size_t i = 0; i < report.count; i++)
            behind = behind || (launched[i] >= 0 && launched[i] < finding.most);
        FUZZ_CHECK(behind && finding.operation != NULL);
    }
    ras_report_clear(&report);
    return 0;
}
