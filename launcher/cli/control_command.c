/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_command.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/control_status.h"
#include "cli/control_words.h"

#define TEXT_MAX ((size_t)1 << 30)
#define STATUS_REFUSED 1

static json_t *request_of(const struct control_words *words)
{
    json_t *request = NULL;
    switch (words->command) {
    case CONTROL_STATUS: return json_pack("{s:s}", "do", "status");
    case CONTROL_UNDRAIN: return json_pack("{s:s, s:s}", "do", "undrain", "host", words->object);
    case CONTROL_ADD: return json_pack("{s:s, s:s}", "do", "add", "hosts", words->object);
    case CONTROL_DRAIN:
        request = json_pack("{s:s, s:s}", "do", "drain", "host", words->object);
        if (words->has_within)
            json_object_set_new(request, "within_s", json_real((double)words->within_ms / 1000));
        return request;
    case CONTROL_COMMANDS: break;
    }
    return NULL;
}

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

static void describe(const struct control_words *words, const json_t *answer, struct buf *out)
{
    switch (words->command) {
    case CONTROL_STATUS:
        if (!words->json) {
            control_status_text(answer, out);
            break;
        }
        json_dump_callback(answer, append_piece, out, JSON_INDENT(2));
        buf_putc(out, '\n');
        break;
    case CONTROL_DRAIN: buf_printf(out, "draining %s\n", words->object); break;
    case CONTROL_UNDRAIN: buf_printf(out, "the job may use %s again\n", words->object); break;
    case CONTROL_ADD: buf_printf(out, "the job may use %s\n", words->object); break;
    case CONTROL_COMMANDS: break;
    }
}

static int ask(const struct control_words *words, struct buf *out, struct error *err)
{
    int fd AUTO_FD = control_client_dial(words->job, err);
    if (fd < 0)
        return -1;
    json_t *request = request_of(words);
    json_t *answer = control_client_ask(fd, request, err);
    json_decref(request);
    if (answer == NULL)
        return -1;
    describe(words, answer, out);
    json_decref(answer);
    return 0;
}

int control_command(int argc, char *const *argv)
{
    struct control_words words;
    struct error err = ERROR_INIT;
    struct buf out AUTO_BUF = BUF_INIT(TEXT_MAX);
    int result = control_words_parse(argc, argv, &words, &err);
    if (result == 0)
        return -1;
    if (result > 0 && words.help)
        control_words_help(&out);
    else if (result > 0)
        result = ask(&words, &out, &err);
    if (result >= 0 && fd_write_all(STDOUT_FILENO, buf_text(&out), out.length) < 0 &&
        errno != EPIPE)
        result = error_errno(&err, errno, "cannot write");
    if (result >= 0)
        return 0;
    fprintf(stderr, "hvdrun: %s\n", err.text);
    return err.status != 0 ? err.status : STATUS_REFUSED;
}
