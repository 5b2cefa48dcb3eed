/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_progress.h"

#include <stdlib.h>

#include "agent/progress_door.h"
#include "agent/progress_files.h"
#include "base/mem.h"

struct crew_progress {
    const struct crew_config *config;
    char *folder;
    char *token; /* path of its file; NULL: no status endpoint */
    struct progress_files *files;
};

struct crew_progress *crew_progress_create(const struct crew_config *config, const char *folder,
                                           const uint32_t *seats, size_t count)
{
    if (folder == NULL || config->progress_desk == NULL)
        return NULL;
    struct crew_progress *progress = mem_alloc(sizeof(*progress));
    *progress = (struct crew_progress){.config = config, .folder = mem_strdup(folder)};
    if (config->progress_door != NULL && config->rendezvous_port > 0)
        progress->token = progress_door_write_token(config->progress_door, folder);
    progress->files = progress_files_create(config->loop, config->progress_desk, folder,
                                            config->epoch, seats, count);
    return progress;
}

void crew_progress_destroy(struct crew_progress *progress)
{
    if (progress == NULL)
        return;
    progress_files_destroy(progress->files);
    free(progress->token);
    free(progress->folder);
    free(progress);
}

struct crew_progress_places crew_progress_places(const struct crew_progress *progress,
                                                 uint32_t seat)
{
    struct crew_progress_places places = {NULL, NULL, NULL};
    if (progress == NULL)
        return places;
    places.file = progress_files_path(progress->folder, seat);
    places.token = progress->token;
    if (progress->token != NULL)
        places.url =
            progress_door_url(progress->config->rendezvous_port, progress->config->epoch, seat);
    return places;
}

void crew_progress_ended(struct crew_progress *progress, uint32_t seat)
{
    if (progress != NULL)
        progress_files_ended(progress->files, seat);
}
