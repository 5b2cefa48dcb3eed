/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper process that reads stacks of workers and of processes below them. What it reads can do
 * it harm. The kernel kills a process with SIGBUS if a file that it has mapped becomes shorter. It
 * holds a process that needs a page from a file system that does not answer, even after SIGKILL. So
 * the agent leaves the helper behind (features/stacks/stack_pool_agent.h).
 *
 * On stdin it gets each StackWork, and it writes a StackAnswer for it to stdout, in this order
 * (agent/piped_message.h). It ends with stdin. If it ends while it has stopped a thread of a
 * worker, the kernel lets that thread go on.
 */
#pragma once

#define STACK_HELPER_WORD "--stacks" /* the argument that makes a program the helper */
#define STACK_HELPER_NAME "hvdrun-stacks"
