/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/words.h"

#define WORD_NAME(id, text) [id] = (text),

const char *mpi_kind_name(enum mpi_kind kind)
{
    static const char *const names[] = {MPI_KIND_WORDS(WORD_NAME)};
    return names[kind];
}

const char *bind_unit_name(enum bind_unit unit)
{
    static const char *const names[] = {BIND_UNIT_WORDS(WORD_NAME)};
    return names[unit];
}
