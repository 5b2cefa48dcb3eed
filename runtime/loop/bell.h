/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bell that the GPU rings when it has completed an operation: a stream of CUDA calls bell_ring()
 * in a thread of its own. Then the thread of the process set wakes up and looks. So nothing polls.
 *
 * A GPU that has failed never calls, and a slow one calls late. So the bell lives as long as
 * somebody may ring it, and is silent when the channel has gone.
 */
#pragma once

#include "loop/channel.h"

struct bell;

struct bell *bell_create(struct channel *channel);
void bell_silence(struct bell *bell); /* gives up the creator's hold; the channel is free */
struct bell *bell_hold(struct bell *bell);
void bell_ring(void *bell); /* and gives up a hold */
