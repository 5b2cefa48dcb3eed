/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/parse.h"
#include "transport/ssh/inside_test.h"

/* The lines of OpenSSH's configuration files, and of what `ssh -G` prints. Pure. */

bool ssh_config_line_next(const char **text, size_t *left, char **line)
{
    if (*left == 0)
        return false;
    const char *start = *text, *newline = memchr(start, '\n', *left);
    size_t length = newline == NULL ? *left : (size_t)(newline - start);
    *text += length + (newline != NULL);
    *left -= length + (newline != NULL);
    while (length > 0 && isspace((unsigned char)start[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)*start))
        start++, length--;
    bool strange = length > SSH_CONFIG_LINE_MAX || memchr(start, '\0', length) != NULL;
    *line = strange ? NULL : mem_strndup(start, length);
    return true;
}

/* True when the line begins with this keyword; `*value` is what follows it. */
static bool line_is(const char *line, const char *keyword, const char **value)
{
    size_t length = strlen(keyword);
    if (strncasecmp(line, keyword, length) != 0)
        return false;
    const char *at = line + length;
    if (*at != '\0' && *at != '=' && !isspace((unsigned char)*at))
        return false;
    *value = at + strspn(at, " \t=");
    return true;
}

/* What is said about a host. */

void ssh_config_init(struct ssh_config *config)
{
    *config = (struct ssh_config){.port = 22, .family = AF_UNSPEC};
}

void ssh_config_destroy(struct ssh_config *config)
{
    free(config->host_name);
    free(config->user);
    free(config->host_key_alias);
    free(config->agent_socket);
    free(config->proxy_jump);
    free(config->proxy_command);
    free(config->not_ours);
    strv_destroy(&config->identities);
    strv_destroy(&config->known_hosts);
    ssh_config_init(config);
}

char *ssh_config_expand(const char *path, const struct ssh_config_place *place)
{
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0') && place->home != NULL)
        return mem_printf("%s%s", place->home, path + 1);
    return mem_strdup(path);
}

void ssh_config_copy(struct ssh_config *to, const struct ssh_config *from, const char *host)
{
    *to = *from;
    to->host_name = mem_strdup(host);
    to->user = mem_strdup(from->user);
    to->host_key_alias = mem_strdup(from->host_key_alias);
    to->agent_socket = mem_strdup(from->agent_socket);
    to->proxy_jump = mem_strdup(from->proxy_jump);
    to->proxy_command = mem_strdup(from->proxy_command);
    to->not_ours = mem_strdup(from->not_ours);
    to->identities = to->known_hosts = (struct strv)STRV_INIT;
    strv_copy(&to->identities, strv_items(&from->identities));
    strv_copy(&to->known_hosts, strv_items(&from->known_hosts));
}

static void replace(char **at, char *text)
{
    free(*at);
    *at = text;
}

static bool is_none(const char *value)
{
    return strcasecmp(value, "none") == 0;
}

static void set_agent(struct ssh_config *config, const char *value,
                      const struct ssh_config_place *place)
{
    const char *name = NULL;
    if (strcmp(value, "SSH_AUTH_SOCK") == 0)
        name = value;
    else if (value[0] == '$')
        name = value + 1;
    const char *path = name != NULL ? place->variable(name) : value;
    bool none = is_none(value) || path == NULL || path[0] == '\0';
    replace(&config->agent_socket, none ? NULL : ssh_config_expand(path, place));
}

void ssh_config_defaults(struct ssh_config *config, const char *host,
                         const struct ssh_config_place *place)
{
    static const char *const identities[] = {"~/.ssh/id_rsa", "~/.ssh/id_ecdsa",
                                             "~/.ssh/id_ed25519", NULL};
    static const char *const known_hosts[] = {"~/.ssh/known_hosts", "~/.ssh/known_hosts2",
                                              "/etc/ssh/ssh_known_hosts",
                                              "/etc/ssh/ssh_known_hosts2", NULL};
    ssh_config_init(config);
    config->host_name = mem_strdup(host);
    config->user = mem_strdup(place->user);
    for (size_t i = 0; identities[i] != NULL; i++)
        strv_add_take(&config->identities, ssh_config_expand(identities[i], place));
    for (size_t i = 0; known_hosts[i] != NULL; i++)
        strv_add_take(&config->known_hosts, ssh_config_expand(known_hosts[i], place));
    set_agent(config, "SSH_AUTH_SOCK", place);
}

static bool is_yes(const char *value)
{
    return strcasecmp(value, "yes") == 0 || strcasecmp(value, "true") == 0;
}

/* OpenSSH prints several files in one line with blanks between them and no quotes. */
static void add_files(struct strv *files, const char *value, const struct ssh_config_place *place)
{
    while (*value != '\0') {
        size_t length = strcspn(value, " ");
        char *file AUTO_FREE = mem_strndup(value, length);
        if (length > 0 && !is_none(file))
            strv_add_take(files, ssh_config_expand(file, place));
        value += length + strspn(value + length, " ");
    }
}

static void set_not_ours(struct ssh_config *config, const char *key, const char *value)
{
    if (config->not_ours == NULL)
        config->not_ours = mem_printf("its ssh configuration has %s %s", key, value);
}

static enum ssh_host_policy policy_of(const char *value)
{
    if (is_yes(value))
        return SSH_HOST_STRICT;
    if (strcasecmp(value, "no") == 0 || strcasecmp(value, "false") == 0 ||
        strcasecmp(value, "off") == 0)
        return SSH_HOST_ANY;
    return SSH_HOST_ACCEPT_NEW; /* "accept-new"; "ask" cannot ask here */
}

static int set_number(const char *key, const char *value, int64_t min, int64_t max, int *out,
                      struct error *err)
{
    int64_t number;
    if (parse_int(value, min, max, &number, err) < 0)
        return error_wrap(err, "ssh -G printed an invalid %s", key);
    *out = (int)number;
    return 0;
}

/* Ways to connect or to log in that only OpenSSH has. */
static bool is_beyond_us(const char *key, const char *value)
{
    static const char *const any_value[] = {"certificatefile", "pkcs11provider", "bindaddress",
                                            "bindinterface", NULL};
    static const char *const when_yes[] = {"hostbasedauthentication", "proxyusefdpass",
                                           "verifyhostkeydns", NULL};
    for (size_t i = 0; any_value[i] != NULL; i++) {
        if (strcmp(key, any_value[i]) == 0)
            return !is_none(value);
    }
    for (size_t i = 0; when_yes[i] != NULL; i++) {
        if (strcmp(key, when_yes[i]) == 0)
            return is_yes(value);
    }
    return false;
}

static int set(struct ssh_config *config, const char *key, const char *value,
               const struct ssh_config_place *place, struct error *err)
{
    if (is_beyond_us(key, value))
        set_not_ours(config, key, value);
    else if (strcmp(key, "hostname") == 0)
        replace(&config->host_name, mem_strdup(value));
    else if (strcmp(key, "user") == 0)
        replace(&config->user, mem_strdup(value));
    else if (strcmp(key, "port") == 0)
        return set_number(key, value, 1, 65535, &config->port, err);
    else if (strcmp(key, "connecttimeout") == 0 && !is_none(value))
        return set_number(key, value, 0, 1 << 30, &config->connect_timeout_s, err);
    else if (strcmp(key, "addressfamily") == 0)
        config->family = strcmp(value, "inet") == 0    ? AF_INET
                         : strcmp(value, "inet6") == 0 ? AF_INET6
                                                       : AF_UNSPEC;
    else if (strcmp(key, "identityfile") == 0 && !is_none(value))
        strv_add_take(&config->identities, ssh_config_expand(value, place));
    else if (strcmp(key, "identityagent") == 0)
        set_agent(config, value, place);
    else if (strcmp(key, "identitiesonly") == 0)
        config->identities_only = is_yes(value);
    else if (strcmp(key, "stricthostkeychecking") == 0)
        config->policy = policy_of(value);
    else if (strcmp(key, "hashknownhosts") == 0)
        config->hash_names = is_yes(value);
    else if (strcmp(key, "hostkeyalias") == 0 && !is_none(value))
        replace(&config->host_key_alias, mem_strdup(value));
    else if (strcmp(key, "proxyjump") == 0 && !is_none(value))
        replace(&config->proxy_jump, mem_strdup(value));
    else if (strcmp(key, "proxycommand") == 0 && !is_none(value))
        replace(&config->proxy_command, mem_strdup(value));
    return 0;
}

int ssh_config_parse(struct ssh_config *config, const char *text, size_t length,
                     const struct ssh_config_place *place, struct error *err)
{
    ssh_config_init(config);
    set_agent(config, "SSH_AUTH_SOCK", place);
    struct strv system_wide AUTO_STRV = STRV_INIT;
    for (char *line = NULL; ssh_config_line_next(&text, &length, &line);) {
        char *owned AUTO_FREE = line;
        char *value = line == NULL ? NULL : strchr(line, ' ');
        if (value == NULL)
            continue;
        *value++ = '\0';
        if (strcmp(line, "userknownhostsfile") == 0)
            add_files(&config->known_hosts, value, place);
        else if (strcmp(line, "globalknownhostsfile") == 0)
            add_files(&system_wide, value, place);
        else if (set(config, line, value, place, err) < 0)
            return -1;
    }
    strv_copy(&config->known_hosts, strv_items(&system_wide));
    if (config->host_name == NULL || config->user == NULL)
        return error_set(err, "ssh -G did not print the host name and the user");
    return 0;
}

static bool is_harmless(const char *line)
{
    /* What changes neither where nor how we log in. */
    static const char *const harmless[] = {"SendEnv",
                                           "GSSAPIAuthentication",
                                           "GSSAPIDelegateCredentials",
                                           "ForwardX11Trusted",
                                           "ForwardX11",
                                           "ForwardAgent",
                                           NULL};
    const char *value;
    for (size_t i = 0; harmless[i] != NULL; i++) {
        if (line_is(line, harmless[i], &value))
            return true;
    }
    return false;
}

/* Whether it may say something else for another host. */
static bool is_by_host(const char *line)
{
    static const char canonical[] = "Canonical"; /* ...izeHostname: the files are read again */
    const char *value;
    return line_is(line, "Match", &value) || !isalpha((unsigned char)line[0]) ||
           strncasecmp(line, canonical, strlen(canonical)) == 0 || strchr(line, '%') != NULL;
}

static void look_at_line(const char *line, struct ssh_config_sight *sight)
{
    const char *value;
    if (line[0] == '\0' || line[0] == '#')
        return;
    if (line_is(line, "Host", &value)) {
        sight->by_host |= strcmp(value, "*") != 0;
    } else if (line_is(line, "HashKnownHosts", &value)) {
        sight->hash_names = is_yes(value);
    } else if (line_is(line, "Include", &value)) {
        bool parts = strcmp(value, SSH_CONFIG_PARTS) == 0;
        sight->includes_parts |= parts;
        sight->by_host |= !parts;
    } else if (!is_harmless(line)) {
        sight->matters = true;
        sight->by_host |= is_by_host(line);
    }
}

void ssh_config_look(const char *text, size_t length, struct ssh_config_sight *sight)
{
    for (char *line = NULL; ssh_config_line_next(&text, &length, &line);) {
        char *owned AUTO_FREE = line;
        if (line == NULL)
            sight->by_host = true;
        else
            look_at_line(line, sight);
    }
    sight->matters |= sight->by_host;
}
