/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types and operations of libhvd as those of MPI.
 *
 * MPI reduces fp32 and fp64. Operations of this engine reduce all other types, with the code in
 * engine/reduce.h. MPI does not have fp16 and bf16. Open MPI 4.1 reduces integers wrongly with AVX:
 * sums of 8 and 16 bits saturate, and minimum and maximum compare unsigned integers as signed ones.
 */
#pragma once

#include <stdbool.h>

#include <mpi.h>

#include "include/hvd.h"

enum { MPI_OWN_TYPES = 11, MPI_OWN_OPS = 4 };

struct mpi_types {
    MPI_Op ops[MPI_OWN_TYPES][MPI_OWN_OPS];
};

void mpi_types_init(struct mpi_types *types);
/* An error code of MPI. */
int mpi_types_create(struct mpi_types *types);
void mpi_types_destroy(struct mpi_types *types); /* mpi_types_init() is enough */

/* Whether the pair exists. Then fills both. */
bool mpi_types_find(const struct mpi_types *types, enum hvd_type type, enum hvd_op op,
                    MPI_Datatype *mpi_type, MPI_Op *mpi_op);
