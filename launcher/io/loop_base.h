/* SPDX-License-Identifier: Apache-2.0 */
/* libevent's part of the loop, for other files of this room that use libevent. */
#pragma once

struct event_base;
struct loop;

struct event_base *loop_base(const struct loop *loop); /* the loop's */
