/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/command.h"

const char *warm_command_read(const char *path, char *const *argv, struct python_line *out)
{
    switch (python_line_read(path, argv, out)) {
    case PYTHON_LINE_OTHER_PROGRAM:
        return "only 'python3 ...', and a script that begins like '#!/usr/bin/env python3', can be "
               "warm";
    case PYTHON_LINE_OTHER_OPTIONS:
        return "a program from stdin, and some options of Python, cannot be warm";
    case PYTHON_LINE_NO_VALUE: return "an option of Python has no value";
    case PYTHON_LINE_NO_TARGET: return "a Python without a script cannot be warm";
    case PYTHON_LINE_READ: break;
    }
    return NULL;
}
