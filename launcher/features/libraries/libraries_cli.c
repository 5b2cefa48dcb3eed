/* SPDX-License-Identifier: Apache-2.0 */
#include "features/libraries/libraries_cli.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/control_show.h"
#include "driver/control/request.h"
#include "model/plan/rank_list.h"

#define ID_SHOWN 12
#define RANKS_MAX ((size_t)1000000)

static void put_ranks(const json_t *list, struct buf *out)
{
    size_t count = json_array_size(list) < RANKS_MAX ? json_array_size(list) : RANKS_MAX;
    int *ranks AUTO_FREE = mem_array(count + 1, sizeof(*ranks));
    for (size_t i = 0; i < count; i++)
        ranks[i] = (int)json_integer_value(json_array_get(list, i));
    rank_ranges_bare(ranks, (int)count, out);
}

/* A cell of at least `width` characters; the last one of a line has none. */
static void put_cell(const char *text, int width, struct buf *out)
{
    size_t before = out->length;
    control_show_text(text, out);
    for (size_t shown = out->length - before; shown < (size_t)width; shown++)
        buf_putc(out, ' ');
    buf_puts(out, width > 0 ? "  " : "\n");
}

static void put_row(const json_t *file, struct buf *out)
{
    struct buf ranks AUTO_BUF = BUF_INIT(4096);
    char *id AUTO_FREE = mem_strndup(control_text_of(file, "build_id", "-"), ID_SHOWN);
    bool deleted = json_is_true(json_object_get(file, "deleted"));
    char *path AUTO_FREE =
        mem_printf("%s%s", control_text_of(file, "path", "?"), deleted ? " (deleted)" : "");
    put_ranks(json_object_get(file, "ranks"), &ranks);
    put_cell(control_text_of(file, "title", "?"), 16, out);
    put_cell(control_text_of(file, "version", "-"), 12, out);
    put_cell(buf_text(&ranks), 8, out);
    put_cell(id, ID_SHOWN, out);
    put_cell(path, 0, out);
}

void control_libraries_text(const json_t *answer, struct buf *out)
{
    const json_t *files = json_object_get(answer, "files"),
                 *differences = json_object_get(answer, "differences");
    const char *missing = control_text_of(answer, "missing", "");
    if (json_array_size(files) == 0)
        buf_puts(out, "no rank has loaded MPI, NCCL, CUDA, PyTorch or libhvd\n");
    else
        buf_puts(out, "library           version       ranks     build id      path\n");
    for (size_t i = 0; i < json_array_size(files); i++)
        put_row(json_array_get(files, i), out);
    for (size_t i = 0; i < json_array_size(differences); i++) {
        const char *text = json_string_value(json_array_get(differences, i));
        put_cell(text != NULL ? text : "?", 0, out);
    }
    if (missing[0] != '\0') {
        buf_puts(out, "no answer about the ranks on ");
        put_cell(missing, 0, out);
    }
}

int control_libraries(const struct job_list *list, const struct control_words *words,
                      struct buf *out, struct error *err)
{
    int fd AUTO_FD = control_client_dial(list, words->job, err);
    if (fd < 0)
        return -1;
    json_t *request = json_pack("{s:s, s:i}", "do", "libraries", "protocol", CONTROL_PROTOCOL);
    json_t *answer = control_client_ask(fd, request, err);
    json_decref(request);
    if (answer == NULL)
        return -1;
    if (words->json)
        control_show_json(answer, out);
    else
        control_libraries_text(answer, out);
    json_decref(answer);
    return 0;
}
