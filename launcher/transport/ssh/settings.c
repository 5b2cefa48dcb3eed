/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/settings.h"

#include "base/mem.h"

#define SILENCE_DEFAULT_MS 120000 /* when the job does not say when a node is given up */

enum ssh_host_policy ssh_settings_policy(const struct ssh_settings *settings,
                                         const struct ssh_config *config)
{
    return settings->strict ? SSH_HOST_STRICT : config->policy;
}

char *ssh_settings_strict_remedy(const struct ssh_settings *settings,
                                 const struct ssh_config *config)
{
    const char *file = settings->config_file != NULL
                           ? settings->config_file
                           : "your ssh configuration (~/.ssh/config or /etc/ssh/ssh_config)";
    bool configured = config->policy == SSH_HOST_STRICT;
    if (settings->strict && !configured)
        return mem_strdup("connect once without --ssh-strict");
    return mem_printf("change StrictHostKeyChecking yes to accept-new in %s%s", file,
                      settings->strict ? " and leave out --ssh-strict" : "");
}

int64_t ssh_settings_silence_ms(const struct ssh_settings *settings)
{
    return settings->room->silence_ms > 0 ? settings->room->silence_ms : SILENCE_DEFAULT_MS;
}

struct ssh_wanted ssh_settings_wanted(const struct ssh_settings *settings,
                                      const struct transport_target *host)
{
    bool own_identity = host->identity != NULL;
    return (struct ssh_wanted){.host = host->address != NULL ? host->address : host->host,
                               .user = host->user != NULL ? host->user : settings->user,
                               .identity = own_identity ? host->identity : settings->identity,
                               .identity_by = own_identity ? "identity in the host list"
                                                           : "--ssh-identity-file",
                               .port = host->port > 0 ? host->port : settings->port};
}

struct ssh_program ssh_settings_program(const struct ssh_settings *settings,
                                        const struct ssh_config *config,
                                        const struct ssh_wanted *wanted)
{
    static const char *const checks[] = {
        [SSH_HOST_ACCEPT_NEW] = NULL, [SSH_HOST_STRICT] = "yes", [SSH_HOST_ANY] = "no"};
    return (struct ssh_program){.config_file = settings->config_file,
                                .identity = wanted->identity,
                                .user = wanted->user,
                                .port = wanted->port,
                                .check = checks[ssh_settings_policy(settings, config)],
                                .silence_ms = ssh_settings_silence_ms(settings)};
}
