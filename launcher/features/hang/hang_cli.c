/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "cli/features.h"
#include "features/hang/expect.h"

/* Checks --expect and --on-hang before anything starts. */
settings_check hang_check;

int hang_check(const struct settings *settings, struct error *err)
{
    struct expects *expects = NULL;
    if (settings->on_hang == SET_ON_HANG_RESTART && !settings_is_elastic(settings))
        return error_status(err, STATUS_USAGE,
                            "%s: only an elastic job can restart its workers; give --min-np, or "
                            "use --on-hang kill",
                            settings_place(settings, OPT_on_hang));
    int result =
        expects_create(&settings->expect, settings_place(settings, OPT_expect), &expects, err);
    expects_destroy(expects);
    return result;
}
