/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the launcher's environment that workers get, what the user adds to it, and which
 * variables most likely hold secrets. Pure.
 *
 * Dropped everywhere: rank variables of an outer launcher (they would be wrong for our workers),
 * secrets, shell functions, the terminal session's SSH_*, and the launcher's own options. Dropped
 * on other hosts: what only has a meaning here (DISPLAY, PWD), and what each host sets itself
 * (HOME, TMPDIR, visible devices...); env_scrub_for_host() takes these from there. Slurm's
 * rank-like names are kept: worker_env rewrites them. docs/environment.md has the lists.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"

/* Appends what is passed on of `env` (NULL-ended "NAME=value"). `same_host`: for workers of this
 * machine. `few`: --no-env, only the handful of names without which programs do not run. */
void env_scrub(char *const *env, bool same_host, bool few, struct strv *out);

/* Is the variable `name` (up to '=' or its end) passed on? */
bool env_scrub_keeps(const char *name, bool same_host, bool few);

/* For workers on another host than the launcher's. Appends `passed`, which env_scrub() made for any
 * host, without the names that are wrong here. Then it appends from `own`, the environment of a
 * process of this host, what this host sets itself: HOME, USER, LOGNAME, SHELL, TMPDIR,
 * XDG_RUNTIME_DIR, visible devices and the like; PATH and LD_LIBRARY_PATH only if `passed` has
 * none. It omits a name that this host does not set and `passed` must not. Both are NULL-ended;
 * NULL is an empty one. */
void env_scrub_for_host(char *const *passed, char *const *own, struct strv *out);

/* --keep-scheduler-env: puts all scheduler variables of `env`, also those that env_scrub() drops.
 */
void env_scrub_scheduler(char *const *env, struct strv *out);

/* The same on the node: where `own`, the environment of its agent, is that of a Slurm job (srun has
 * started it), all SLURM_* of `out` are replaced by those of `own`. */
void env_scrub_own_scheduler(char *const *own, struct strv *out);

/* One -x: "NAME=value", "NAME" (its value in `env`, even if it would be dropped) or "PREFIX*" (all
 * that begin so). Puts the result into `out`. Returns the number of variables set; 0 means that
 * `env` has none, which deserves a warning; -1 for a word that is not a name. */
int env_spec_apply(const char *spec, char *const *env, struct strv *out, struct error *err);

/*
 * --env-file: the bytes of `file` (its name, for errors "file:line: ..."). Lines are NAME=value
 * with an optional `export ` in front. Blank lines and lines that begin with # are skipped. A value
 * in single quotes is taken as it is. In double quotes \n \t \" \\ \$ are escapes. A value without
 * quotes ends at a # after a blank, and blanks around it are dropped. Nothing is expanded. Puts
 * into `out`.
 */
int env_file_parse(const char *bytes, size_t length, const char *file, struct strv *out,
                   struct error *err);

/* Most likely a secret, by its name: TOKEN, PASSWORD, PASSWD, SECRET, KEY, CREDENTIAL, AUTH or
 * COOKIE in any case. */
bool secret_is_name(const char *name, size_t length);

/* Appends "NAME=VALUE" of an environment, or "NAME=(hidden, 40 bytes)". */
void secret_mask(const char *pair, struct buf *out);
