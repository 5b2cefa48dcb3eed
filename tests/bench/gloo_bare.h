/* SPDX-License-Identifier: Apache-2.0 */
/* gloo::allreduce without libhvd. The ranks meet in a folder. */
#pragma once

#include <cstdlib>
#include <memory>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

inline std::shared_ptr<gloo::Context> gloo_bare_context(int rank, int size, const char *folder)
{
    gloo::transport::tcp::attr attributes;
    attributes.iface = std::getenv("HOROVOD_GLOO_IFACE");
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(folder);
    auto made = std::make_shared<gloo::rendezvous::Context>(rank, size);
    made->connectFullMesh(store, device);
    return made;
}

/* A bare_allreduce, whose context is a std::shared_ptr<gloo::Context>. */
inline void gloo_bare(void *context, float *data, size_t count)
{
    gloo::AllreduceOptions options(*static_cast<std::shared_ptr<gloo::Context> *>(context));
    options.setOutput(data, count);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
}
