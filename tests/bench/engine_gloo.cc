/* SPDX-License-Identifier: Apache-2.0 */
/* gloo::allreduce beside the engine gloo: engine_gloo ROUNDS FOLDER. The bare ranks meet in the
 * folder. */
#include <cstdlib>
#include <memory>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

extern "C" {
#include "engine_rounds.h"
}

static void bare(void *context, float *data, size_t count)
{
    gloo::AllreduceOptions options(*static_cast<std::shared_ptr<gloo::Context> *>(context));
    options.setOutput(data, count);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {4, 4096, 1 << 20, 64 << 20, 0};
    struct worker worker;
    if (argc != 3)
        worker_fail("usage: engine_gloo ROUNDS FOLDER");
    worker_open(&worker);
    struct engine_comm *comm = worker_comm(&worker, 0);
    gloo::transport::tcp::attr attributes;
    attributes.iface = std::getenv("HOROVOD_GLOO_IFACE");
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(argv[2]);
    auto made = std::make_shared<gloo::rendezvous::Context>(worker.place.rank, worker.place.size);
    made->connectFullMesh(store, device);
    std::shared_ptr<gloo::Context> context = made;
    engine_rounds(&worker, comm, bare, &context, sizes, std::atoi(argv[1]));
    worker.engine->comm_destroy(comm);
    worker_close(&worker);
    return 0;
}
