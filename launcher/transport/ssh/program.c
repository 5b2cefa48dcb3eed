/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/program.h"

#include "base/buf.h"
#include "transport/exec/exec.h"

#define WORD_MAX 8192
#define ALIVE_INTERVAL_MS 5000 /* as in the template */

/* A word of a template in which nothing is replaced. */
static int add_literal(struct strv *words, const char *prefix, const char *text, struct error *err)
{
    struct buf word AUTO_BUF = BUF_INIT(WORD_MAX);
    int rc = buf_puts(&word, prefix);
    for (const char *at = text; *at != '\0' && rc == 0; at++)
        rc = buf_puts(&word, at[0] == '%' ? "%%" : (char[]){at[0], '\0'});
    if (rc < 0)
        return error_set(err, "a path for ssh is longer than %d bytes", WORD_MAX);
    strv_add(words, buf_text(&word));
    return 0;
}

/* ssh takes the first value that it finds for each option, so ours go before the template's. */
int ssh_program_words(const struct ssh_program *program, struct strv *words, struct error *err)
{
    struct strv template AUTO_STRV = STRV_INIT;
    if (exec_template_parse(EXEC_SSH_TEMPLATE, &template, err) < 0)
        return -1;
    strv_add(words, template.items[0]);
    strv_add(words, "-oClearAllForwardings=yes");
    strv_add(words, "-oRemoteCommand=none");
    strv_add(words, "-oControlPath=none"); /* one connection a host, and it ends with us */
    if (program->config_file != NULL) {
        strv_add(words, "-F");
        if (add_literal(words, "", program->config_file, err) < 0)
            return -1;
    }
    if (program->identity != NULL) {
        strv_add(words, "-i");
        if (add_literal(words, "", program->identity, err) < 0)
            return -1;
    }
    if (program->user != NULL) {
        strv_add(words, "-l");
        strv_add(words, program->user);
    }
    if (program->port > 0)
        strv_printf(words, "-p%d", program->port);
    if (program->check != NULL)
        strv_printf(words, "-oStrictHostKeyChecking=%s", program->check);
    if (program->silence_ms > 0)
        strv_printf(words, "-oServerAliveCountMax=%d",
                    (int)((program->silence_ms + ALIVE_INTERVAL_MS - 1) / ALIVE_INTERVAL_MS));
    strv_copy(words, strv_items(&template) + 1);
    return 0;
}
