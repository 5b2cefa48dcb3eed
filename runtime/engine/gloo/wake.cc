/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/gloo/wake.h"

namespace shim
{

WakeBuffer::WakeBuffer(std::shared_ptr<WakeContext> context, std::unique_ptr<Buffer> inner)
    : Buffer(inner->ptr, inner->size), context_(std::move(context)), inner_(std::move(inner))
{
    context_->add(this);
}

WakeBuffer::~WakeBuffer()
{
    context_->remove(this);
}

bool WakeBuffer::waitRecv(int *rank, Milliseconds timeout)
{
    context_->check();
    if (!inner_->waitRecv(rank, timeout))
        throw gloo::IoException("the engine was aborted");
    return true;
}

bool WakeBuffer::waitSend(int *rank, Milliseconds timeout)
{
    context_->check();
    if (!inner_->waitSend(rank, timeout))
        throw gloo::IoException("the engine was aborted");
    return true;
}

} // namespace shim
