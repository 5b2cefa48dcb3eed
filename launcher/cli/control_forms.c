/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_forms.h"

const struct control_form control_forms[CONTROL_COMMANDS] = {
#define CONTROL_ROW(name, word, operands, help) [name] = {word, operands, help},
    CONTROL_COMMAND_LIST(CONTROL_ROW)
#undef CONTROL_ROW
};
