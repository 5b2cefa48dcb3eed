/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/agree.h"

#include <stdlib.h>

#include "base/mem.h"

static void compare_all(const struct settings *own, int size, const struct buf *all,
                        const size_t *lengths, struct error *difference)
{
    const char *at = buf_text(all) + lengths[0];
    for (int rank = 1; rank < size; rank++) {
        if (settings_compare(own, rank, at, lengths[rank], difference) != 0)
            return;
        at += lengths[rank];
    }
}

enum hvd_status agree(const struct engine *engine, struct engine_comm *comm, int rank, int size,
                      const struct settings *settings, int64_t timeout_ms, struct error *err)
{
    AUTO_BUF struct buf all = BUF_INIT(CORE_MESSAGE_MAX), answer = BUF_INIT(CORE_MESSAGE_MAX);
    size_t *lengths AUTO_FREE = mem_array((size_t)size, sizeof *lengths);
    struct error difference = ERROR_INIT;
    bool root = rank == 0;
    enum hvd_status status =
        engine->gather_messages(comm, buf_text(&settings->bytes), settings->bytes.length,
                                root ? &all : NULL, root ? lengths : NULL, timeout_ms, err);
    if (status != HVD_OK)
        return status;
    if (root)
        compare_all(settings, size, &all, lengths, &difference);
    buf_puts(&answer, difference.text);
    status = engine->broadcast_message(comm, &answer, timeout_ms, err);
    if (status != HVD_OK || answer.length == 0)
        return status;
    error_set(err, "%s", buf_text(&answer));
    return HVD_ERR_MISMATCH;
}

enum hvd_status agree_on_success(const struct engine *engine, struct engine_comm *comm,
                                 bool success, int64_t timeout_ms, bool *all, struct error *err)
{
    uint64_t word = success ? 1 : 0;
    enum hvd_status status = engine->and_words(comm, &word, 1, timeout_ms, err);
    *all = word != 0;
    return status;
}
