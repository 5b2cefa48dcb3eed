/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/types.h"

const char *pmi1_state_name(enum pmi1_state state)
{
    static const char *const names[] = {
#define PMI1_STATE_NAME(name, text) [name] = (text),
        PMI1_STATE_LIST(PMI1_STATE_NAME)
#undef PMI1_STATE_NAME
    };
    return names[state];
}
