/* SPDX-License-Identifier: Apache-2.0 */
/* gloo::allreduce beside the engine gloo: engine_gloo ROUNDS FOLDER. The bare ranks meet in the
 * folder. */
#include <memory>
#include <string>

#include "gloo_bare.h"

extern "C" {
#include "engine_rounds.h"
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {4, 4096, 1 << 20, 64 << 20, 0};
    struct worker worker;
    if (argc != 3)
        worker_fail("usage: engine_gloo ROUNDS FOLDER");
    worker_open(&worker);
    struct engine_comm *comm = worker_comm(&worker, 0);
    std::shared_ptr<gloo::Context> context =
        gloo_bare_context(worker.place.rank, worker.place.size, argv[2]);
    engine_rounds(&worker, comm, gloo_bare, &context, sizes, std::stoi(argv[1]));
    worker.engine->comm_destroy(comm);
    worker_close(&worker);
    return 0;
}
