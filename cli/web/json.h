/* Writing JSON for an answer, and reading the little that a request may contain. */
#ifndef HF_CLI_WEB_JSON_H
#define HF_CLI_WEB_JSON_H

#include "web.h"

/* A text that is being written. It owns its bytes until json_take(). */
struct json {
	FILE *out;
	char *bytes;
	size_t length;
	bool follows; /* something precedes in the same object or array, so a comma is needed */
};

/* False: out of memory. */
bool json_open(struct json *json);
/* Ends the text and returns its bytes, which the caller frees; NULL: out of memory. */
char *json_take(struct json *json, size_t *ret_length);

/* Each writes one value; key is NULL inside an array and at the top. */
void json_begin(struct json *json, const char *key, char bracket);
void json_end(struct json *json, char bracket);
void json_bytes(struct json *json, const char *key, const char *bytes, size_t length);
void json_text(struct json *json, const char *key, const char *text);
/* "" stands for what is not known, and becomes null. */
void json_known(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, int64_t number);
/* Numbers below `least` stand for what is not known, and become null. */
void json_least(struct json *json, const char *key, int64_t number, int64_t least);
void json_flag(struct json *json, const char *key, bool flag);
/* The name of a lock as part of a path, which identifies it even if it is not UTF-8. */
void json_path(struct json *json, const char *key, const char *name, size_t length);

/* Sends the text as the body of an answer. */
void json_reply(struct json *json, struct evhttp_request *req);

/*
 * Reads the member of an object whose members are all strings. Returns its text as UTF-8, which the
 * caller frees; NULL: the body is something else, or does not have exactly one such member.
 */
char *json_read_member(const char *body, size_t length, const char *key);

#endif
