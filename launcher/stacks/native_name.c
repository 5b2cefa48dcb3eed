/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native_name.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define NAME_MAX_BYTES 160

static bool follows(const char *name, const char *at, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(at - name) >= length && strncmp(at - length, word, length) == 0;
}

/* "(anonymous namespace)" and "operator()" are parts of a name; any other parenthesis begins the
 * arguments. */
static bool is_argument_list(const char *name, const char *at)
{
    static const char anonymous[] = "(anonymous namespace)";
    return strncmp(at, anonymous, sizeof(anonymous) - 1) != 0 && !follows(name, at, "operator");
}

/* Copies a C++ name up to its arguments; what is between < and > becomes "...". */
static void put_shortened(const char *name, struct buf *out)
{
    int depth = 0;
    for (const char *at = name; *at != '\0'; at++) {
        bool operator_name = follows(name, at, "operator") || follows(name, at, "operator<");
        if (*at == '<' && !operator_name && depth++ == 0)
            buf_puts(out, "<...>");
        if (depth == 0 && *at == '(' && is_argument_list(name, at))
            return;
        if (depth == 0)
            buf_putc(out, *at);
        if (*at == '>' && depth > 0)
            depth--;
    }
}

static size_t length_before(const char *text, char end)
{
    size_t length = 0;
    while (length < NAME_MAX_BYTES - 1 && text[length] != '\0' && text[length] != end)
        length++;
    return length;
}

char *native_name(const struct unwind_frame *frame)
{
    struct buf text = BUF_INIT(NAME_MAX_BYTES);
    if (frame->function == NULL && frame->object[0] == '\0')
        buf_puts(&text, "(code without a file)");
    else if (frame->function == NULL)
        buf_printf(&text, "+0x%" PRIx64, frame->offset);
    else if (strchr(frame->function, '(') != NULL)
        put_shortened(frame->function, &text);
    else /* "name@@GLIBC_2.34": without the version */
        buf_printf(&text, "%.*s", (int)length_before(frame->function, '@'), frame->function);
    return buf_take(&text);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool native_name_is_python(const char *function)
{
    return begins(function, "_PyEval_EvalFrame") || begins(function, "PyEval_EvalFrame") ||
           begins(function, "_TAIL_CALL_");
}

bool native_name_is_start(const char *function, const char *file)
{
    static const char *const names[] = {"_start",
                                        "__libc_start_main",
                                        "__libc_start_main_impl",
                                        "__libc_start_call_main",
                                        "start_thread",
                                        "thread_start",
                                        "clone",
                                        "__clone",
                                        "clone3",
                                        "__clone3"};
    const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
    if (function[0] == '+')
        return begins(base, "libc.so") || begins(base, "libpthread.so");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(function, names[i]) == 0)
            return true;
    }
    return false;
}
