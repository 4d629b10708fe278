/* Writing JSON for an answer. */
#include "json.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool json_open(struct json *json)
{
	*json = (struct json){0};
	json->out = open_memstream(&json->bytes, &json->length);
	return json->out != NULL;
}

char *json_take(struct json *json, size_t *ret_length)
{
	bool whole = !ferror(json->out);
	whole = fclose(json->out) == 0 && whole;
	*ret_length = whole ? json->length : 0;
	if (whole)
		return json->bytes;
	free(json->bytes);
	return NULL;
}

static void begin_value(struct json *json, const char *key)
{
	if (json->follows)
		putc(',', json->out);
	json->follows = true;
	if (key)
		fprintf(json->out, "\"%s\":", key);
}

void json_begin(struct json *json, const char *key, char bracket)
{
	begin_value(json, key);
	putc(bracket, json->out);
	json->follows = false;
}

void json_end(struct json *json, char bracket)
{
	putc(bracket, json->out);
	json->follows = true;
}

void json_bytes(struct json *json, const char *key, const char *bytes, size_t length)
{
	begin_value(json, key);
	cli_write_json(json->out, bytes, length);
}

void json_text(struct json *json, const char *key, const char *text)
{
	json_bytes(json, key, text, strlen(text));
}

static void json_null(struct json *json, const char *key)
{
	begin_value(json, key);
	fputs("null", json->out);
}

void json_known(struct json *json, const char *key, const char *text)
{
	if (*text)
		json_text(json, key, text);
	else
		json_null(json, key);
}

void json_number(struct json *json, const char *key, int64_t number)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRId64, number);
}

void json_least(struct json *json, const char *key, int64_t number, int64_t least)
{
	if (number >= least)
		json_number(json, key, number);
	else
		json_null(json, key);
}

void json_flag(struct json *json, const char *key, bool flag)
{
	begin_value(json, key);
	fputs(flag ? "true" : "false", json->out);
}

void json_path(struct json *json, const char *key, const char *name, size_t length)
{
	begin_value(json, key);
	putc('"', json->out);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)name[i];
		if (isascii(c) && (isalnum(c) || (c && strchr("-_~", c))))
			putc(c, json->out);
		else
			fprintf(json->out, "%%%02X", c);
	}
	putc('"', json->out);
}

void json_reply(struct json *json, struct evhttp_request *req)
{
	size_t length;
	char *body = json_take(json, &length);
	web_reply_body(req, 200, "application/json", body, length);
}
