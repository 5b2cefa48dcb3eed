/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/gloo/shim.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include "engine/gloo/wake.h"

namespace
{

using shim::Milliseconds;
using shim::WakeContext;

/* Gloo writes to sockets in a way that raises SIGPIPE if the other end has gone, and the default of
 * that signal ends the program. The signal goes to the thread that writes. So this blocks it there
 * while Gloo runs, and then discards the one that came. The rest of the program is not affected. */
class WithoutPipeSignal
{
  public:
    WithoutPipeSignal()
    {
        sigset_t pending;
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~WithoutPipeSignal()
    {
        const struct timespec at_once = {};
        if (!was_pending_)
            while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
            }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    sigset_t pipe_, before_;
    bool was_pending_;
};

/* Gloo's thread inherits this: it must not run the program's signal handlers. */
class WithoutSignals
{
  public:
    WithoutSignals()
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~WithoutSignals()
    {
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    sigset_t before_;
};

/* Gloo's context makes its transport only in its own rendezvous, which cannot be stopped. */
class MeshContext final : public gloo::Context
{
  public:
    MeshContext(int own_rank, int ranks) : gloo::Context(own_rank, ranks)
    {
    }
    void use(std::shared_ptr<gloo::transport::Device> device,
             std::shared_ptr<gloo::transport::Context> transport)
    {
        device_ = std::move(device);
        transportContext_ = std::move(transport);
    }
};

/* Gloo waits five of its time-outs for a connection. */
constexpr int64_t connect_factor = 5;

/* Gloo's messages begin with "[file:line] ", and may end with a newline. */
std::string plain(const char *what)
{
    std::string text(what);
    if (text.rfind('[', 0) == 0 && text.find("] ") != std::string::npos)
        text.erase(0, text.find("] ") + 2);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    return text;
}

} // namespace

struct device {
    std::shared_ptr<gloo::transport::Device> device;
};

struct mesh {
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<gloo::transport::Context> sockets;
    std::shared_ptr<WakeContext> transport;
    std::shared_ptr<MeshContext> context;
    std::vector<char> addresses;
    std::atomic<bool> broken{false};
    std::timed_mutex in_use;         /* an operation runs */
    std::atomic<int> connecting{-1}; /* the peer that it connects to */
    std::mutex closer_mutex;
    std::thread closer; /* see close_soon() */
};

namespace
{

/* Nothing else wakes an operation that waits for this. There is no connection yet, as a rule. */
void stop_connecting(struct mesh *mesh)
{
    const int peer = mesh->connecting;
    try {
        if (peer >= 0)
            mesh->sockets->getPair(peer)->close();
    } catch (const std::exception &) { /* it is closed already */
    }
}

/* Gloo's own close() resets the connection. If the peer is slow, its Gloo has not taken the
 * connection by then. It would throw an exception in its own thread, which ends the process. So the
 * connections go as when all is over. No operation may use them meanwhile. */
void close_all(struct mesh *mesh)
{
    while (!mesh->in_use.try_lock_for(Milliseconds(10)))
        stop_connecting(mesh);
    std::lock_guard<std::timed_mutex> lock(mesh->in_use, std::adopt_lock);
    for (int i = 0; i < mesh->transport->size; i++)
        mesh->sockets->getPair(i).reset();
}

/* For stop_connecting(). */
class Connecting
{
  public:
    Connecting(struct mesh *mesh, int peer) : mesh_(mesh)
    {
        mesh_->connecting = peer;
    }
    ~Connecting()
    {
        mesh_->connecting = -1;
    }

  private:
    struct mesh *mesh_;
};

/* Each peer that waits for this rank then fails, too. For each connection, Gloo waits until its own
 * thread has had a turn, which takes up to 10 ms. Nobody else should wait for that. */
void close_soon(struct mesh *mesh)
{
    std::lock_guard<std::mutex> lock(mesh->closer_mutex);
    if (mesh->closer.joinable())
        return;
    try {
        WithoutSignals inherited;
        mesh->closer = std::thread(close_all, mesh);
    } catch (const std::system_error &) { /* there is no thread */
        close_all(mesh);
    }
}

template <typename Function> enum hvd_status guard(struct error *err, Function function)
{
    try {
        function();
        return HVD_OK;
    } catch (const gloo::IoException &problem) {
        error_set(err, "gloo: %s", plain(problem.what()).c_str());
        return HVD_ERR_PEER_LOST;
    } catch (const std::exception &problem) {
        error_set(err, "gloo: %s", plain(problem.what()).c_str());
    } catch (...) {
        error_set(err, "gloo failed, and did not say why");
    }
    return HVD_ERR_ENGINE;
}

template <typename Function>
enum hvd_status run(struct mesh *mesh, struct error *err, Function function)
{
    std::unique_lock<std::timed_mutex> lock(mesh->in_use);
    if (mesh->broken || mesh->transport->woken()) {
        error_set(err, mesh->transport->woken()
                           ? "the engine was aborted"
                           : "an earlier operation of this process set failed");
        return HVD_ERR_PEER_LOST;
    }
    WithoutPipeSignal quiet;
    enum hvd_status status = guard(err, [&] {
        mesh->transport->check();
        function();
    });
    if (status != HVD_OK) {
        mesh->broken = true;
        lock.unlock();
        close_soon(mesh);
    }
    return status;
}

/* A buffer without bytes may be NULL: Gloo gets an address all the same. */
char *bytes_of(const void *data)
{
    static const char nothing = 0;
    return static_cast<char *>(const_cast<void *>(data == nullptr ? &nothing : data));
}

/* Where each part begins; the last one is the sum. */
std::vector<size_t> offsets(const size_t *bytes, int size)
{
    std::vector<size_t> at(static_cast<size_t>(size) + 1);
    std::partial_sum(bytes, bytes + size, at.begin() + 1);
    return at;
}

template <typename Element>
void allreduce(struct mesh *mesh, void *data, size_t count, mesh_reduce *reduce)
{
    gloo::AllreduceOptions options(mesh->context);
    options.setOutput(static_cast<Element *>(data), count);
    options.setReduceFunction(reduce);
    gloo::allreduce(options);
}

} // namespace

enum hvd_status device_create(const char *interface, struct device **device, struct error *err)
{
    enum hvd_status status = guard(err, [&] {
        gloo::transport::tcp::attr attributes;
        if (interface != nullptr)
            attributes.iface = interface;
        auto made = std::make_unique<struct device>();
        WithoutSignals inherited;
        made->device = gloo::transport::tcp::CreateDevice(attributes);
        *device = made.release();
    });
    if (status == HVD_OK)
        return status;
    if (interface != nullptr)
        error_wrap(err, "cannot use the network interface '%s' of HOROVOD_GLOO_IFACE", interface);
    else
        error_wrap(err,
                   "cannot find a network interface by this host's name: set HOROVOD_GLOO_IFACE");
    return HVD_ERR_ARGUMENT;
}

void device_destroy(struct device *device)
{
    delete device;
}

enum hvd_status mesh_create(struct device *device, int rank, int size, int64_t timeout_ms,
                            struct mesh **mesh, struct error *err)
{
    return guard(err, [&] {
        auto made = std::make_unique<struct mesh>();
        made->device = device->device;
        const Milliseconds timeout(timeout_ms);
        made->sockets = device->device->createContext(rank, size);
        made->sockets->setTimeout(std::max(timeout / connect_factor, Milliseconds(1)));
        made->transport = std::make_shared<WakeContext>(made->sockets);
        for (int i = 0; i < size; i++) {
            if (i == rank)
                continue;
            std::vector<char> address = made->sockets->createPair(i)->address().bytes();
            const size_t part = address.size();
            made->addresses.resize(part * static_cast<size_t>(size));
            std::copy(address.begin(), address.end(),
                      made->addresses.begin() + static_cast<ptrdiff_t>(part) * i);
        }
        made->sockets->setTimeout(timeout);
        made->transport->setTimeout(timeout);
        made->context = std::make_shared<MeshContext>(rank, size);
        made->context->use(made->device, made->transport);
        made->context->setTimeout(timeout);
        *mesh = made.release();
    });
}

void mesh_destroy(struct mesh *mesh)
{
    if (mesh != nullptr && mesh->closer.joinable())
        mesh->closer.join();
    delete mesh;
}

void mesh_wake(struct mesh *mesh)
{
    mesh->transport->wake();
    close_soon(mesh);
}

const void *mesh_addresses(const struct mesh *mesh, size_t *length)
{
    *length = mesh->addresses.size();
    return mesh->addresses.data();
}

enum hvd_status mesh_connect(struct mesh *mesh, int peer, const void *addresses, size_t length,
                             struct error *err)
{
    const size_t part = mesh->addresses.size() / static_cast<size_t>(mesh->transport->size);
    const size_t mine = static_cast<size_t>(mesh->transport->rank) * part;
    if (length != mesh->addresses.size()) {
        error_set(err, "rank %d published addresses of another size: is it the same version?",
                  peer);
        return HVD_ERR_ENGINE;
    }
    return run(mesh, err, [&] {
        const char *from = static_cast<const char *>(addresses) + mine;
        Connecting to(mesh, peer);
        mesh->sockets->getPair(peer)->connect(std::vector<char>(from, from + part));
        mesh->transport->check(); /* a wait that was woken looks like a success */
    });
}

enum hvd_status mesh_allreduce(struct mesh *mesh, void *data, size_t count, size_t element_bytes,
                               mesh_reduce *reduce, struct error *err)
{
    return run(mesh, err, [&] {
        if (count == 0)
            return;
        switch (element_bytes) {
        case 1: return allreduce<uint8_t>(mesh, data, count, reduce);
        case 2: return allreduce<uint16_t>(mesh, data, count, reduce);
        case 4: return allreduce<uint32_t>(mesh, data, count, reduce);
        default: return allreduce<uint64_t>(mesh, data, count, reduce);
        }
    });
}

enum hvd_status mesh_allgatherv(struct mesh *mesh, const void *in, void *out, const size_t *bytes,
                                struct error *err)
{
    const auto rank = static_cast<size_t>(mesh->transport->rank);
    const auto size = static_cast<size_t>(mesh->transport->size);
    return run(mesh, err, [&] {
        size_t before = 0;
        for (size_t i = 0; i < rank; i++)
            before += bytes[i];
        gloo::AllgathervOptions options(mesh->context);
        if (bytes[rank] > 0 && in != static_cast<char *>(out) + before)
            options.setInput(bytes_of(in), bytes[rank]);
        options.setOutput(bytes_of(out), std::vector<size_t>(bytes, bytes + size));
        gloo::allgatherv(options);
    });
}

enum hvd_status mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root,
                               struct error *err)
{
    return run(mesh, err, [&] {
        if (bytes == 0)
            return;
        gloo::BroadcastOptions options(mesh->context);
        options.setOutput(bytes_of(data), bytes);
        options.setRoot(root);
        gloo::broadcast(options);
    });
}

/* Like Gloo's own. But that also sends the parts without bytes, and each of them costs the two
 * ranks as many messages as another one. */
enum hvd_status mesh_alltoallv(struct mesh *mesh, const void *in, const size_t *send_bytes,
                               void *out, const size_t *receive_bytes, struct error *err)
{
    const int rank = mesh->transport->rank, size = mesh->transport->size;
    return run(mesh, err, [&] {
        const uint64_t slot = gloo::Slot::build(gloo::kAlltoallSlotPrefix, 0);
        const Milliseconds timeout = mesh->transport->getTimeout();
        const std::vector<size_t> send_at = offsets(send_bytes, size);
        const std::vector<size_t> receive_at = offsets(receive_bytes, size);
        auto from = mesh->transport->createUnboundBuffer(bytes_of(in), send_at[size]);
        auto to = mesh->transport->createUnboundBuffer(bytes_of(out), receive_at[size]);
        int sends = 0, receives = 0;
        for (int i = 1; i < size; i++) {
            const int next = (rank + i) % size, last = (rank + size - i) % size;
            if (send_bytes[next] > 0) {
                from->send(next, slot, send_at[next], send_bytes[next]);
                sends++;
            }
            if (receive_bytes[last] > 0) {
                to->recv(last, slot, receive_at[last], receive_bytes[last]);
                receives++;
            }
        }
        std::copy_n(bytes_of(in) + send_at[rank], send_bytes[rank],
                    bytes_of(out) + receive_at[rank]);
        for (; receives > 0; receives--)
            to->waitRecv(nullptr, timeout);
        for (; sends > 0; sends--)
            from->waitSend(nullptr, timeout);
    });
}

enum hvd_status mesh_barrier(struct mesh *mesh, struct error *err)
{
    return run(mesh, err, [&] {
        gloo::BarrierOptions options(mesh->context);
        gloo::barrier(options);
    });
}
