/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"

#define EXACT_MAX 9007199254740992.0 /* all whole numbers up to 2^53 are exact */

static const char *suffix_of(enum exposition_type type)
{
    switch (type) {
    case EXPOSITION_COUNTER: return "_total";
    case EXPOSITION_INFO: return "_info";
    case EXPOSITION_GAUGE: break;
    }
    return "";
}

static const char *type_name(enum exposition_type type, enum exposition_format format)
{
    if (type == EXPOSITION_COUNTER)
        return "counter";
    return type == EXPOSITION_INFO && format == EXPOSITION_OPENMETRICS ? "info" : "gauge";
}

void exposition_family(struct exposition *exposition, const struct exposition_family *family)
{
    struct buf *out = exposition->out;
    bool is_open = exposition->format == EXPOSITION_OPENMETRICS;
    const char *suffix = is_open ? "" : suffix_of(family->type);
    exposition->family = family;
    buf_printf(out, "# HELP %s%s %s\n", family->name, suffix, family->help);
    buf_printf(out, "# TYPE %s%s %s\n", family->name, suffix,
               type_name(family->type, exposition->format));
    if (is_open && family->unit != NULL)
        buf_printf(out, "# UNIT %s %s\n", family->name, family->unit);
}

static void put_label(struct buf *out, const struct exposition_label *label)
{
    char *value AUTO_FREE = mem_strdup(label->value);
    plain_valid(value, strlen(value));
    buf_printf(out, "%s=\"", label->name);
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '\n')
            buf_puts(out, "\\n");
        else if (*at == '\\' || *at == '"')
            buf_printf(out, "\\%c", *at);
        else
            buf_putc(out, *at);
    }
    buf_putc(out, '"');
}

void exposition_sample(const struct exposition *exposition, const struct exposition_label *labels,
                       size_t count, double value)
{
    struct buf *out = exposition->out;
    if (!isfinite(value))
        return;
    buf_printf(out, "%s%s{", exposition->family->name, suffix_of(exposition->family->type));
    put_label(out, &exposition->common);
    for (size_t i = 0; i < count; i++) {
        buf_putc(out, ',');
        put_label(out, &labels[i]);
    }
    bool whole = fabs(value) <= EXACT_MAX && value == floor(value);
    buf_printf(out, whole ? "} %.0f\n" : "} %.15g\n", value);
}

void exposition_end(const struct exposition *exposition)
{
    if (exposition->format == EXPOSITION_OPENMETRICS)
        buf_puts(exposition->out, "# EOF\n");
}

enum exposition_format exposition_format_for(const char *accept)
{
    bool named = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    return named ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}
