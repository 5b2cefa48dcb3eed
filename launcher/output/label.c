/* SPDX-License-Identifier: Apache-2.0 */
#include "output/label.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

/* The template with every %x as two bytes in a checked order: rendering needs no errors. */
struct label {
    char *template;
    unsigned keys;
};

static unsigned key_of(char letter)
{
    switch (letter) {
    case 'r': return LABEL_RANK;
    case 'h': return LABEL_HOST;
    case 'l': return LABEL_LOCAL_RANK;
    case 's': return LABEL_STREAM;
    case 't': return LABEL_TIME;
    default: return 0;
    }
}

static int check(const char *template, unsigned *keys, struct error *err)
{
    if (strlen(template) > LABEL_TEMPLATE_MAX)
        return error_set(err, "the template '%.40s...' is too long: at most %d bytes", template,
                         LABEL_TEMPLATE_MAX);
    for (const char *at = template; *at != '\0'; at++) {
        if (*at == '\n' || *at == '\r')
            return error_set(err, "a template must be one line; remove the line break");
        if (*at != '%')
            continue;
        at++;
        unsigned key = key_of(*at);
        if (key == 0 && *at != '%')
            return error_set(err,
                             "unknown '%%%.*s' in the template '%.200s'; expected %%r rank, %%h "
                             "host, %%l local rank, %%s stream, %%t time or %%%%",
                             isprint((unsigned char)*at) ? 1 : 0, at, template);
        *keys |= key;
    }
    return 0;
}

struct label *label_compile(const char *template, struct error *err)
{
    unsigned keys = 0;
    if (check(template, &keys, err) != 0)
        return NULL;
    struct label *label = mem_alloc(sizeof(*label));
    label->template = mem_strdup(template);
    label->keys = keys;
    return label;
}

void label_destroy(struct label *label)
{
    if (label == NULL)
        return;
    free(label->template);
    free(label);
}

unsigned label_keys(const struct label *label)
{
    return label->keys;
}

static struct tm local_time(int64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / 1000000000);
    struct tm parts = {0};
    localtime_r(&seconds, &parts);
    return parts;
}

static void render_time(int64_t wall_ns, struct buf *out)
{
    struct tm parts = local_time(wall_ns);
    buf_printf(out, "%04d-%02d-%02d %02d:%02d:%02d.%03d", parts.tm_year + 1900, parts.tm_mon + 1,
               parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
               (int)(wall_ns / 1000000 % 1000));
}

static void render_key(char letter, const struct label_facts *facts, struct buf *out)
{
    switch (letter) {
    case 'r':
        if (facts->world > 0)
            buf_printf(out, "%d.%d", facts->world, facts->world_rank);
        else
            buf_printf(out, "%d", facts->rank);
        break;
    case 'h': buf_puts(out, facts->host != NULL ? facts->host : "?"); break;
    case 'l': buf_printf(out, "%d", facts->local_rank); break;
    case 's': buf_puts(out, facts->stream); break;
    case 't': render_time(facts->wall_ns, out); break;
    default: buf_putc(out, '%'); break;
    }
}

void label_render(const struct label *label, const struct label_facts *facts, struct buf *out)
{
    const char *at = label->template;
    while (*at != '\0') {
        size_t plain = strcspn(at, "%");
        buf_append(out, at, plain);
        at += plain;
        if (*at == '%') {
            render_key(at[1], facts, out);
            at += 2;
        }
    }
}

/* Not strftime(): its %a and %b follow the locale, asctime's names do not. */
void label_timestamp(int64_t wall_ns, struct buf *out)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm parts = local_time(wall_ns);
    buf_printf(out, "%.3s %.3s%3d %02d:%02d:%02d %d", days + parts.tm_wday * 3,
               months + parts.tm_mon * 3, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
               parts.tm_year + 1900);
}
