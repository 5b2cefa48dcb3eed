/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gpus_ask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/program.h"
#include "node/gpus.h"

#define WSL_FOLDER "/usr/lib/wsl/lib"
#define ANSWER_MAX ((size_t)64 << 10)

struct gpus_ask {
    struct program *program; /* NULL: it has answered */
    void (*answered)(void *context, int gpus);
    void *context;
};

char *gpus_ask_program(const char *root, const char *search)
{
    if (!gpus_have_control(root))
        return NULL;
    char *path AUTO_FREE =
        search == NULL ? mem_strdup(WSL_FOLDER) : mem_printf("%s:" WSL_FOLDER, search);
    return child_find("nvidia-smi", path, NULL, NULL);
}

/* Lines "GPU 0: NVIDIA H100 (UUID: GPU-...)"; MIG devices have lines of their own below. */
static int count_gpus(const char *text)
{
    int count = 0;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        count += strncmp(line, "GPU ", 4) == 0;
    }
    return count;
}

static void program_done(void *context, const struct program_result *result)
{
    struct gpus_ask *ask = context;
    ask->program = NULL;
    ask->answered(ask->context, result->why == NULL ? count_gpus(result->text) : 0);
}

struct gpus_ask *gpus_ask_create(struct loop *loop, struct helpers *helpers, const char *program,
                                 int64_t limit_ms, void (*answered)(void *context, int gpus),
                                 void *context)
{
    struct gpus_ask *ask = mem_alloc(sizeof(*ask));
    *ask = (struct gpus_ask){.answered = answered, .context = context};
    char *const argv[] = {(char *)"nvidia-smi", (char *)"-L", NULL};
    const struct program_spec spec = {.loop = loop,
                                      .helpers = helpers,
                                      .path = program,
                                      .argv = argv,
                                      .output_max = ANSWER_MAX,
                                      .drops_excess = true,
                                      .time_max_ms = limit_ms};
    ask->program = program_start(&spec, program_done, ask);
    return ask;
}

void gpus_ask_destroy(struct gpus_ask *ask)
{
    if (ask == NULL)
        return;
    program_cancel(ask->program);
    free(ask);
}
