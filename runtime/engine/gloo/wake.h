/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport of Gloo whose waits another thread can wake. Gloo's own can wake one buffer, and its
 * collectives ignore that.
 */
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

namespace shim
{

using Milliseconds = std::chrono::milliseconds;
using Buffer = gloo::transport::UnboundBuffer;

class WakeContext;

/* A buffer of Gloo whose waits can be woken. Gloo's collectives ignore that a wait was aborted, so
 * that is an exception here. */
class WakeBuffer final : public Buffer
{
  public:
    WakeBuffer(std::shared_ptr<WakeContext> context, std::unique_ptr<Buffer> inner);
    ~WakeBuffer() override;

    bool waitRecv(int *rank, Milliseconds timeout) override;
    bool waitSend(int *rank, Milliseconds timeout) override;
    void abortWaitRecv() override
    {
        inner_->abortWaitRecv();
    }
    void abortWaitSend() override
    {
        inner_->abortWaitSend();
    }
    void send(int to, uint64_t slot, size_t offset, size_t bytes) override
    {
        inner_->send(to, slot, offset, bytes);
    }
    void recv(int from, uint64_t slot, size_t offset, size_t bytes) override
    {
        inner_->recv(from, slot, offset, bytes);
    }
    void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t bytes) override
    {
        inner_->recv(std::move(from), slot, offset, bytes);
    }

  private:
    std::shared_ptr<WakeContext> context_;
    std::unique_ptr<Buffer> inner_;
};

/* Knows all buffers that exist, so that another thread can wake those that wait. */
class WakeContext final : public gloo::transport::Context,
                          public std::enable_shared_from_this<WakeContext>
{
  public:
    WakeContext(std::shared_ptr<gloo::transport::Context> inner)
        : gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner))
    {
    }

    std::unique_ptr<gloo::transport::Pair> &getPair(int peer) override
    {
        return inner_->getPair(peer);
    }
    std::unique_ptr<gloo::transport::Pair> &createPair(int peer) override
    {
        return inner_->createPair(peer);
    }
    std::unique_ptr<Buffer> createUnboundBuffer(void *data, size_t bytes) override
    {
        return std::make_unique<WakeBuffer>(shared_from_this(),
                                            inner_->createUnboundBuffer(data, bytes));
    }

    void add(WakeBuffer *buffer)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        check();
        buffers_.insert(buffer);
    }
    void remove(WakeBuffer *buffer)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        buffers_.erase(buffer);
    }
    void check() const
    {
        if (woken_)
            throw gloo::IoException("the engine was aborted");
    }
    bool woken() const
    {
        return woken_;
    }
    void wake()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        woken_ = true;
        for (WakeBuffer *buffer : buffers_) {
            buffer->abortWaitRecv();
            buffer->abortWaitSend();
        }
    }

  private:
    std::shared_ptr<gloo::transport::Context> inner_;
    std::mutex mutex_;
    std::set<WakeBuffer *> buffers_;
    std::atomic<bool> woken_{false};
};

inline WakeBuffer::WakeBuffer(std::shared_ptr<WakeContext> context, std::unique_ptr<Buffer> inner)
    : Buffer(inner->ptr, inner->size), context_(std::move(context)), inner_(std::move(inner))
{
    context_->add(this);
}

inline WakeBuffer::~WakeBuffer()
{
    context_->remove(this);
}

inline bool WakeBuffer::waitRecv(int *rank, Milliseconds timeout)
{
    context_->check();
    if (!inner_->waitRecv(rank, timeout))
        throw gloo::IoException("the engine was aborted");
    return true;
}

inline bool WakeBuffer::waitSend(int *rank, Milliseconds timeout)
{
    context_->check();
    if (!inner_->waitSend(rank, timeout))
        throw gloo::IoException("the engine was aborted");
    return true;
}

} // namespace shim
