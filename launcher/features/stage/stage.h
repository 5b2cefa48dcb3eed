/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --stage: files that each host gets on a disk of its own before the job starts.
 *
 * A *root* is a file or folder that --stage names. The driver lists all that is below it, with a
 * hash of each content: the *list* of the root (list.h). The hash of the list is the root's id.
 * Each agent has a *store* (store.h), a folder of the user on its own disk. It holds the copies of
 * roots, each under its id. What a copy needs and other copies have is linked or copied from there.
 * The rest comes from the driver.
 *
 * The contents of a list, one after the other, are its *stream*. It is sent in *chunks* of
 * STAGE_CHUNK bytes.
 *
 *   driver                           agent
 *   STAGE  list of root 0     ->             (a node that has said HELLO)
 *                             <-     STAGED  which chunks are missing
 *   STAGE  a chunk            ->             at most STAGE_WINDOW that are not STAGED yet
 *                             <-     STAGED  how many it has written
 *                             <-     STAGED  the copy is complete, or a problem
 *   STAGE  list of root 1 ...
 *   then the node counts as up
 *
 * The driver reads a chunk once for all hosts that are near each other in the stream. It keeps the
 * last STAGE_CACHE chunks, and all links share these. A host that is further behind makes the
 * driver read its chunks again. So a slow host neither holds the others up nor fills memory.
 *
 * Both ends read, hash and write in a thread (work_thread.h), for a disk or server may not answer.
 * A host that shows no progress for STAGE_SILENCE_MS has failed. The progress counts, and not the
 * time in all.
 *
 * A copy is read-only, because jobs share it, and copies share files. An agent holds a shared lock
 * on each copy that its job uses (flock of the folder), so nobody removes it meanwhile. A copy is
 * built in another folder, and renamed when it is complete. If two agents
 * build the same one, the first rename wins, and the other agent takes that copy.
 */
#pragma once

#define STAGE_CHUNK ((size_t)512 << 10)
#define STAGE_WINDOW 8 /* chunks; less with many hosts */
#define STAGE_CACHE 64 /* chunks: 32 MiB */
#define STAGE_SILENCE_MS 30000
#define STAGE_ROOTS_MAX 64
#define STAGE_LIST_MAX ((size_t)56 << 20) /* bytes, below what a frame may have */
