/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adasum, a sum that takes the angle between gradients into account. Of two vectors a and b it
 * makes
 *
 *     (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b
 *
 * So orthogonal vectors are added, and the result of equal ones is their average. A factor is 1 if
 * its vector is almost zero. All sums are made in double, and each combined vector is rounded to
 * the type of the elements.
 *
 * The vectors of many ranks are combined in pairs, as in Horovod: those of set ranks r and r ^ 1,
 * then the results of r and r ^ 2, and so on. If the size is not a power of two, let p be the next
 * lower one. Then each rank r >= p first gives its vector to rank r - p. Horovod refuses such
 * sizes.
 *
 * Vectors are halved and distances doubled: in the step of distance d, a rank keeps one half of its
 * range, and gets that half of its partner's vector. So the 2d ranks of a group have one vector in
 * parts, and add up what each knows of the products above. At the end, the steps are undone with
 * the results. All ranks have the same bits.
 *
 * It uses only alltoallv() of an engine, so every engine has it.
 */
#pragma once

#include "engine/engine.h"

struct adasum_job {
    const struct engine *engine;
    struct engine_comm *comm;
    int rank, size; /* in the set */
    enum hvd_type type;
};

/* All floating-point types. */
bool adasum_has_type(enum hvd_type type);

/* In place. `data` has `tensors` vectors back to back, of counts[0], counts[1], ... elements. Each
 * is combined for itself. Status: as of the operations in engine/engine.h. */
enum hvd_status adasum_run(const struct adasum_job *job, void *data, const size_t *counts,
                           size_t tensors, struct error *err);
