/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/setup.h"

#include "base/mem.h"
#include "base/parse.h"

#define RANKS_MAX (1 << 24)
#define TIMEOUT_SECONDS 30 /* as in Horovod */

const char *setup_value(setup_get *get, const char *name)
{
    const char *text = get(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

int setup_number(setup_get *get, const char *name, int64_t min, int64_t max, int64_t *out,
                 struct error *err)
{
    const char *text = setup_value(get, name);
    if (text == NULL || parse_int(text, min, max, out, err) == 0)
        return 0;
    return error_wrap(err, "%s", name);
}

/* A rank and the size that it must be below, as in HOROVOD_RANK and HOROVOD_SIZE. */
static int read_pair(setup_get *get, const char *rank_name, const char *size_name, int *rank,
                     int *size, struct error *err)
{
    int64_t own = -1, all = 0;
    if (setup_number(get, rank_name, 0, RANKS_MAX - 1, &own, err) != 0 ||
        setup_number(get, size_name, 1, RANKS_MAX, &all, err) != 0)
        return -1;
    *rank = (int)own;
    *size = (int)all;
    if ((*rank >= 0) != (*size > 0))
        return error_set(err, "%s is set and %s is not: set both, or neither",
                         *size > 0 ? size_name : rank_name, *size > 0 ? rank_name : size_name);
    if (*rank >= *size && *size > 0)
        return error_set(err, "%s is %d, and must be less than %s, which is %d", rank_name, *rank,
                         size_name, *size);
    return 0;
}

/* Without them, all ranks count as one host. */
static void complete_place(struct engine_place *place)
{
    if (place->local_size == 0) {
        place->local_rank = place->rank;
        place->local_size = place->size;
    }
    if (place->cross_size == 0) {
        place->cross_rank = 0;
        place->cross_size = 1;
    }
}

static int read_place(struct engine_place *place, setup_get *get, struct error *err)
{
    if (read_pair(get, "HOROVOD_RANK", "HOROVOD_SIZE", &place->rank, &place->size, err) != 0 ||
        read_pair(get, "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", &place->local_rank,
                  &place->local_size, err) != 0 ||
        read_pair(get, "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", &place->cross_rank,
                  &place->cross_size, err) != 0)
        return -1;
    if (place->size == 0)
        *place = (struct engine_place){0};
    else
        complete_place(place);
    return 0;
}

enum hvd_status setup_read(struct engine_setup *setup, setup_get *get, struct error *err)
{
    *setup = (struct engine_setup){
        .address = setup_value(get, "HOROVOD_GLOO_RENDEZVOUS_ADDR"),
        .host = setup_value(get, "HOROVOD_HOSTNAME"),
        .interface = setup_value(get, "HOROVOD_GLOO_IFACE"),
    };
    int64_t port = 0, seconds = TIMEOUT_SECONDS, no_threads = 0;
    if (read_place(&setup->place, get, err) != 0 ||
        setup_number(get, "HOROVOD_GLOO_RENDEZVOUS_PORT", 1, 65535, &port, err) != 0 ||
        setup_number(get, "HOROVOD_GLOO_TIMEOUT_SECONDS", 1, 1000000, &seconds, err) != 0 ||
        setup_number(get, "HOROVOD_MPI_THREADS_DISABLE", 0, 1, &no_threads, err) != 0)
        return HVD_ERR_ARGUMENT;
    setup->port = (int)port;
    setup->mpi_threads_disabled = no_threads != 0;
    setup->timeout_ms = seconds * 1000;
    if (setup->address != NULL && setup->port == 0) {
        error_set(err,
                  "HOROVOD_GLOO_RENDEZVOUS_ADDR is set and HOROVOD_GLOO_RENDEZVOUS_PORT is not: "
                  "set both, or neither");
        return HVD_ERR_ARGUMENT;
    }
    return HVD_OK;
}

/* ---- The ranks of a communicator ------------------------------------------------------------- */

static enum hvd_status check_ranks(const struct engine_place *place, const int *ranks, int count,
                                   struct error *err)
{
    bool *found AUTO_FREE = mem_array((size_t)place->size, sizeof *found);
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= place->size) {
            error_set(err, "the process set has rank %d, and the job has %d ranks", ranks[i],
                      place->size);
            return HVD_ERR_ARGUMENT;
        }
        if (found[ranks[i]]) {
            error_set(err, "the process set has rank %d twice", ranks[i]);
            return HVD_ERR_ARGUMENT;
        }
        found[ranks[i]] = true;
    }
    return HVD_OK;
}

enum hvd_status ranks_find(const struct engine_place *place, const int *ranks, int count,
                           int *set_rank, struct error *err)
{
    enum hvd_status status = check_ranks(place, ranks, count, err);
    for (int i = 0; i < count && status == HVD_OK; i++) {
        if (ranks[i] == place->rank) {
            *set_rank = i;
            return HVD_OK;
        }
    }
    if (status == HVD_OK)
        error_set(err, "rank %d is not a member of the process set", place->rank);
    return HVD_ERR_ARGUMENT;
}
