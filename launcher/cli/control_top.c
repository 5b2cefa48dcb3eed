/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_top.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/control_client.h"
#include "cli/control_usage.h"
#include "cli/module/screen_module.h"
#include "cli/place.h"
#include "driver/control/folder.h"
#include "driver/control/request.h"
#include "driver/usage/usage_marks.h"
#include "io/module_open.h"

#define TEXT_MAX ((size_t)64 << 20)
#define PERIOD_MS 2000  /* of the live table */
#define BETWEEN_MS 1000 /* two samples, for what the ranks use between them */
#define LOOK_MS 20      /* a round of the agents takes some milliseconds */

static json_t *ask(int fd, struct error *err)
{
    json_t *request = json_pack("{s:s, s:i}", "do", "usage", "protocol", CONTROL_PROTOCOL);
    json_t *usage = control_client_ask(fd, request, err);
    json_decref(request);
    return usage;
}

/* The first question makes the job ask its agents; then we wait for what they say. The job limits
 * the time of that. */
static json_t *ask_anew(int fd, struct error *err)
{
    json_t *usage = ask(fd, err);
    for (bool again = true; again && usage != NULL;) {
        json_decref(usage);
        poll(NULL, 0, LOOK_MS);
        usage = ask(fd, err);
        again = json_is_true(json_object_get(usage, "sampling"));
    }
    return usage;
}

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

static int show_once(int fd, const struct control_words *words, struct buf *out, struct error *err)
{
    json_t *usage = ask_anew(fd, err);
    if (usage == NULL)
        return -1;
    json_decref(usage);
    poll(NULL, 0, BETWEEN_MS);
    usage = ask_anew(fd, err);
    if (usage == NULL)
        return -1;
    usage_marks_set(usage);
    if (words->json) {
        json_dump_callback(usage, append_piece, out, JSON_INDENT(2) | JSON_REAL_PRECISION(16));
        buf_putc(out, '\n');
    } else {
        control_usage_text(usage, out);
    }
    json_decref(usage);
    return 0;
}

static const struct screen_module *open_module(struct error *err)
{
    char *folder AUTO_FREE = place_modules();
    char *path AUTO_FREE = mem_printf("%s/hvdrun-screen.so", folder);
    return module_open(path, SCREEN_MODULE_KIND, err);
}

/* Until the user leaves: 0. -1: the job does not answer. */
static int show_all(int fd, const struct screen_module *module, struct screen *screen,
                    struct error *err)
{
    struct control_usage_views views = {
        .title = BUF_INIT(TEXT_MAX), .ranks = BUF_INIT(TEXT_MAX), .hosts = BUF_INIT(TEXT_MAX)};
    enum screen_key key = SCREEN_NONE;
    size_t order = 0;
    json_t *usage = NULL;
    while (key != SCREEN_LEAVES) {
        usage = ask_anew(fd, err);
        if (usage == NULL)
            break;
        usage_marks_set(usage);
        do {
            json_t *sorted = json_copy(usage);
            control_usage_sort(sorted, order);
            control_usage_views(sorted, &views);
            json_decref(sorted);
            const struct screen_view tables[] = {{"ranks", buf_text(&views.ranks)},
                                                 {"hosts", buf_text(&views.hosts)}};
            key = module->show(screen, buf_text(&views.title), tables,
                               control_usage_order_name(order), CONTROL_USAGE_MARK, PERIOD_MS);
            order += key == SCREEN_SORT;
        } while (key == SCREEN_SORT);
        json_decref(usage);
    }
    control_usage_views_destroy(&views);
    return usage == NULL ? -1 : 0;
}

static int show_live(int fd, struct error *err)
{
    if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
        return error_status(err, STATUS_USAGE,
                            "top needs a terminal; use 'hvdrun top --once', or --once --json");
    const struct screen_module *module = open_module(err);
    if (module == NULL)
        return -1;
    struct screen *screen = module->open();
    if (screen == NULL)
        return error_set(err, "cannot use this terminal; is TERM right? 'hvdrun top --once' works");
    int result = show_all(fd, module, screen, err);
    module->close(screen);
    return result;
}

int control_top(const struct job_list *list, const struct control_words *words, struct buf *out,
                struct error *err)
{
    if (words->json && !words->once)
        return error_status(err, STATUS_USAGE, "top: --json needs --once");
    int fd AUTO_FD = control_client_dial(list, words->job, err);
    if (fd < 0)
        return -1;
    bool is_path = words->job != NULL && strchr(words->job, '/') != NULL;
    char *id AUTO_FREE = mem_strdup(is_path ? NULL : job_list_find(list, words->job, false, NULL));
    int result = words->once ? show_once(fd, words, out, err) : show_live(fd, err);
    if (result < 0 && id != NULL && err->status == 0 && !job_folder_runs(list->folder, id))
        return error_set(err, "job %s has ended; 'hvdrun status %s' says how", id, id);
    return result;
}
