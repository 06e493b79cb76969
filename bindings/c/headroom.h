/* Asks Headroom from C, or from any language that calls C. Questions and replies are JSON.
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
 *   arguments  Flags by their long names with underscores, and positional arguments by their names in the help.
 *              A value is a string, a number, a list or, for a flag without a value, true (false and null leave it out).
 *              set, set_system, set_software and vary also accept an object: {"layers": 64} is layers=64.
 *              Arguments that take a file (model, system, software) also accept an object with the file's content.
 *              `format` defaults to json.
 *   files      Optional: strings or objects by file name. Arguments may name them. They take precedence over files on disk.
 *   disk       Optional: if false, the command reads and writes no file on disk. Default: true.
 *
 * A reply has the command's exit code, its output, and its notes and warnings (`messages`):
 *
 *   {"status": 0, "reply": {...}, "messages": [...]}      `reply`: the JSON that the program prints, byte for byte.
 *   {"status": 0, "text": "...", "messages": [...]}       `text`: the program's output where it is not JSON.
 *   {"status": 2, "errors": [{"field": "devices", "rule": "must be ..."}], "messages": [...]}
 *
 *   status     0 done and fits; 1 internal error; 2 bad input; 3 does not fit, or nothing feasible (with a reply);
 *              4 predictions out of tolerance; 130 stopped before there was an answer.
 *
 * `headroom schema NAME` prints the schema of a reply.
 *
 * The interface is stable: while HEADROOM_API stays the same, functions keep their meaning, and questions and replies only
 * gain members.
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

/* Receives the progress of a search, a sweep or another long command. A thread of the library calls it about ten times a
 * second. Calls for one question never overlap. `progress` is JSON, without members that are not known:
 *
 *   {"step": "searching", "done": 3, "of": 10, "best_iteration_seconds": 1.2, "decided": 0.4, "gap": 0.01}
 *
 * Return nonzero to end the command with the best result found so far. */
typedef int (*headroom_watch)(void *context, const char *progress);

/* Returns the reply to a question, or null if memory ran out. Free the reply with headroom_free(). `question` has `length`
 * bytes of UTF-8. `watch` may be null; it receives `context`. Any number of threads may call headroom_ask() at once. */
HEADROOM_EXPORT char *headroom_ask(const char *question, size_t length, headroom_watch watch, void *context);

/* Frees a reply. Null is ignored. */
HEADROOM_EXPORT void headroom_free(char *reply);

#ifdef __cplusplus
}
#endif

#endif
