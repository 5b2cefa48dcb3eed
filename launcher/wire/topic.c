/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/topic.h"

#include "wire/control.pb-c.h"

#define TOPIC_DEFINE(name_, number_, request_, answer_, fresh_, ...)                             \
    const struct topic topic_##name_ = {                                                         \
        #name_, number_,    &hvdrun__##request_##__descriptor, &hvdrun__##answer_##__descriptor, \
        fresh_, __VA_ARGS__};
TOPIC_LIST(TOPIC_DEFINE)
#undef TOPIC_DEFINE
