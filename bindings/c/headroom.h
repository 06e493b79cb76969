/* Headroom from C, and from any language that calls C: a question in JSON, a reply in JSON.
 *
 *   char *reply = headroom_ask(question, strlen(question), NULL, NULL);
 *   ...
 *   headroom_free(reply);
 *
 * A question names a command of the program and its arguments:
 *
 *   {"command": "plan",
 *    "arguments": {"model": "llama-3-70b", "system": "dgx-h100-80g", "devices": 64, "global_batch": 512}}
 *
 *   command    A command, such as "plan", "estimate", "sweep plan", "list models".
 *   arguments  Flags by their long names with underscores, and positional arguments by their names in the help. A value is a
 *              text, a number, true (of a flag without a value; false and null leave it out) or a list. For set, set_system,
 *              set_software and vary it may be an object: {"layers": 64} is layers=64. For what takes a file (model, system,
 *              software) it may be the object that the file would hold. `format` is json unless it is given.
 *   files      Optional: texts by name, or objects. Arguments may name them. They stand in front of files on disk.
 *   disk       Optional: false, and the command reads and writes no file on disk. Default: true.
 *
 * A reply has the exit code of the command, what it printed, and what it said beside that:
 *
 *   {"status": 0, "reply": {...}, "messages": [...]}      What the program prints in JSON, byte for byte.
 *   {"status": 0, "text": "...", "messages": [...]}       What it prints, where that is no JSON.
 *   {"status": 2, "errors": [{"field": "devices", "rule": "must be ..."}], "messages": [...]}
 *
 *   status     0 done and fits; 1 internal error; 2 bad input; 3 does not fit, or nothing feasible (there is a reply);
 *              4 predictions out of tolerance; 130 stopped before there was an answer.
 *
 * `headroom schema NAME` prints the schema of a reply.
 *
 * Stable: within one HEADROOM_API a function keeps its meaning, and questions and replies only gain members.
 */
#ifndef HEADROOM_H
#define HEADROOM_H

#include <stddef.h>

#if defined(__GNUC__)
#define HEADROOM_EXPORT __attribute__((visibility("default")))
#else
#define HEADROOM_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HEADROOM_API 1

/* Returns the HEADROOM_API that the library was built with. */
HEADROOM_EXPORT int headroom_api(void);

/* Returns the version of the library, such as "0.2.0". */
HEADROOM_EXPORT const char *headroom_version(void);

/* Told how far a search, a sweep or another long command is, some ten times a second and never twice at once for one question,
 * by a thread of the library: {"step": "searching", "done": 3, "of": 10, "best_iteration_seconds": 1.2, "decided": 0.4,
 * "gap": 0.01}, without members that are not known. Nonzero ends the command with the best it has. */
typedef int (*headroom_watch)(void *context, const char *progress);

/* Returns the reply to a question, which headroom_free() takes back; null if memory ran out. Any number of threads may ask at
 * once. `question` has `length` bytes of UTF-8. `watch` may be null; `context` is handed to it. */
HEADROOM_EXPORT char *headroom_ask(const char *question, size_t length, headroom_watch watch, void *context);

/* Frees a reply. Null is ignored. */
HEADROOM_EXPORT void headroom_free(char *reply);

#ifdef __cplusplus
}
#endif

#endif
