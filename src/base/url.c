/* Takes a URL apart. All rules that keep a password from being shown are in here. */
#include "base/url.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/holdfast.h>

/* A URL that is being taken apart. */
struct parse {
	struct hf__url *url;
	const char *text; /* the whole URL, for byte numbers in messages */
	char *out;        /* the next free byte of the block */
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct parse *parse, const char *format,
                                                        ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(parse->why, parse->why_size, format, args);
	va_end(args);
	return HF_EINVAL;
}

static bool is_control(unsigned char byte)
{
	return byte < 0x20 || byte == 0x7f;
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

/* The byte that the escape at `at` stands for, or -1. */
static int decode_escape(const char *at, const char *end)
{
	int high = end - at > 2 ? hex_value(at[1]) : -1;
	int low = end - at > 2 ? hex_value(at[2]) : -1;

	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static int copy_decoded(struct parse *parse, const char *from, const char *end,
                        const char **ret_text)
{
	const char *start = parse->out;

	for (const char *at = from; at < end; at++) {
		int byte = (unsigned char)*at;

		if (byte == '%') {
			byte = decode_escape(at, end);
			if (byte <= 0)
				return refuse(parse, "URL: the percent escape at byte %td %s",
				              at - parse->text + 1,
				              byte == 0 ? "is a NUL"
				                        : "lacks its two hexadecimal digits");
			at += 2;
		}
		*parse->out++ = (char)byte;
	}
	*parse->out++ = '\0';
	*ret_text = start;
	return 0;
}

static const char *copy_raw(struct parse *parse, const char *from, const char *end)
{
	const char *start = parse->out;

	parse->out = (char *)mempcpy(parse->out, from, (size_t)(end - from));
	*parse->out++ = '\0';
	return start;
}

static int check_bytes(struct parse *parse)
{
	if (strnlen(parse->text, HF__URL_MAX + 1) > HF__URL_MAX)
		return refuse(parse, "URL: longer than the %d bytes that are allowed", HF__URL_MAX);
	for (const char *at = parse->text; *at; at++) {
		if (is_control((unsigned char)*at) || *at == ' ')
			return refuse(
				parse,
				"URL: byte %td is a space or control character; write it as a "
				"percent escape",
				at - parse->text + 1);
		if (*at == '#')
			return refuse(parse, "URL: byte %td is a '#'; write it as %%23",
			              at - parse->text + 1);
	}
	return 0;
}

/* If "@host" was forgotten, the password is where the port should be, so nothing of it is shown. */
static int parse_port(struct parse *parse, const char *from, const char *end)
{
	static const char hint[] = "; a password needs '@' and the host after it";
	int port = 0;

	if (from == end)
		return refuse(parse, "port: missing after the ':'");
	for (const char *at = from; at < end; at++)
		if (*at < '0' || *at > '9')
			return refuse(parse, "port: not a number%s", hint);
	for (const char *at = from; at < end && port <= 65535; at++)
		port = port * 10 + (*at - '0');
	if (port == 0 || port > 65535)
		return refuse(parse, "port: not between 1 and 65535%s", hint);
	parse->url->port = port;
	return 0;
}

/* What is between the brackets; the name of an interface may follow the address after a '%'. */
static int check_ip6(struct parse *parse, const char *from, const char *end)
{
	char address[INET6_ADDRSTRLEN];
	unsigned char bytes[sizeof(struct in6_addr)];
	const char *percent = memchr(from, '%', (size_t)(end - from));
	size_t size = (size_t)((percent ? percent : end) - from);

	if (size >= sizeof(address))
		return refuse(parse, "host: expected an IPv6 address between the brackets");
	memcpy(address, from, size);
	address[size] = '\0';
	if (inet_pton(AF_INET6, address, bytes) != 1)
		return refuse(parse, "host: expected an IPv6 address between the brackets");
	return 0;
}

/* Finds the ']' of a host that begins with '['. */
static int find_bracket(struct parse *parse, const char *from, const char *end,
                        const char **ret_close)
{
	const char *close = memchr(from, ']', (size_t)(end - from));

	if (!close)
		return refuse(parse, "host: '[' without ']'");
	if (close + 1 < end && close[1] != ':')
		return refuse(parse, "host: only a port may follow the ']'");
	*ret_close = close;
	return 0;
}

static int parse_bracketed(struct parse *parse, const char *from, const char *end)
{
	const char *close = NULL;
	int rc = find_bracket(parse, from, end, &close);

	if (rc == 0)
		rc = copy_decoded(parse, from + 1, close, &parse->url->host);
	if (rc == 0)
		rc = check_ip6(parse, parse->url->host, strchr(parse->url->host, '\0'));
	if (rc == 0 && close + 1 < end)
		rc = parse_port(parse, close + 2, end);
	return rc;
}

/* A user and password whose separators were escaped by mistake must not pass for a host. */
static int refuse_escaped_colon(struct parse *parse)
{
	return refuse(parse,
	              "host: contains an escaped ':'; escape it in users and passwords only");
}

static int parse_plain(struct parse *parse, const char *from, const char *end)
{
	const char *colon = memchr(from, ':', (size_t)(end - from));
	int rc;

	if (colon == from)
		return refuse(parse, "host: missing");
	if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
		return refuse(parse, "host: more than one ':'; an IPv6 address needs brackets");
	rc = copy_decoded(parse, from, colon ? colon : end, &parse->url->host);
	if (rc == 0 && strchr(parse->url->host, ':'))
		return refuse_escaped_colon(parse);
	if (rc == 0 && colon)
		rc = parse_port(parse, colon + 1, end);
	return rc;
}

/* One host of several: what is not an IPv6 address has no colon except that of its port. */
static int check_listed(struct parse *parse, const char *from, const char *end)
{
	const char *close = from;
	const char *colon;
	int rc = 0;

	if (from < end && *from == '[') {
		rc = find_bracket(parse, from, end, &close);
		if (rc == 0)
			rc = check_ip6(parse, from + 1, close);
	} else {
		for (const char *at = from; at < end; at++)
			if (*at == '%' && decode_escape(at, end) == ':')
				return refuse_escaped_colon(parse);
	}
	colon = rc == 0 ? memchr(close, ':', (size_t)(end - close)) : NULL;
	return colon ? parse_port(parse, colon + 1, end) : rc;
}

/* Several hosts: the caller takes them apart, but each is checked here. */
static int parse_list(struct parse *parse, const char *from, const char *end)
{
	const char *next;
	int rc = copy_decoded(parse, from, end, &parse->url->host);

	for (const char *at = from; rc == 0 && at < end; at = next + 1) {
		const char *comma = memchr(at, ',', (size_t)(end - at));

		next = comma ? comma : end;
		rc = check_listed(parse, at, next);
	}
	parse->url->port = 0;
	return rc;
}

static int parse_hosts(struct parse *parse, const char *from, const char *end)
{
	int rc;

	parse->url->authority = copy_raw(parse, from, end);
	if (memchr(from, ',', (size_t)(end - from)))
		rc = parse_list(parse, from, end);
	else if (from < end && *from == '[')
		rc = parse_bracketed(parse, from, end);
	else
		rc = parse_plain(parse, from, end);
	if (rc < 0)
		return rc;
	for (const char *at = parse->url->host; *at; at++)
		if (is_control((unsigned char)*at) || *at == ' ' || *at == '@')
			return refuse(parse,
			              "host: contains a space, a control character or an '@'");
	return 0;
}

static int parse_authority(struct parse *parse, const char *from, const char *end)
{
	const char *at = memrchr(from, '@', (size_t)(end - from));
	const char *colon;
	int rc;

	if (!at)
		return parse_hosts(parse, from, end);
	colon = memchr(from, ':', (size_t)(at - from));
	rc = copy_decoded(parse, from, colon ? colon : at, &parse->url->user);
	if (rc == 0 && colon)
		rc = copy_decoded(parse, colon + 1, at, &parse->url->password);
	return rc < 0 ? rc : parse_hosts(parse, at + 1, end);
}

static int parse_pair(struct parse *parse, const char *from, const char *end)
{
	struct hf__url_pair *pair;
	const char *equals = memchr(from, '=', (size_t)(end - from));
	int rc;

	if (equals == from)
		return refuse(parse, "query: '=' without a name at byte %td",
		              from - parse->text + 1);
	if (parse->url->pair_count == HF__URL_PAIRS_MAX)
		return refuse(parse, "query: more than %d options", HF__URL_PAIRS_MAX);
	pair = &parse->url->pairs[parse->url->pair_count++];
	rc = copy_decoded(parse, from, equals ? equals : end, &pair->key);
	if (rc == 0)
		rc = copy_decoded(parse, equals ? equals + 1 : end, end, &pair->value);
	return rc;
}

static int parse_query(struct parse *parse, const char *from)
{
	for (const char *end; *from; from = *end ? end + 1 : end) {
		int rc;

		end = from + strcspn(from, "&");
		if (end == from)
			continue;
		rc = parse_pair(parse, from, end);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int parse_path(struct parse *parse, const char *from)
{
	const char *end = from + strcspn(from, "?");
	int rc = copy_decoded(parse, from, end, &parse->url->path);

	return rc < 0 || !*end ? rc : parse_query(parse, end + 1);
}

/* What follows "scheme:". */
static int parse_rest(struct parse *parse, const char *rest)
{
	const char *end;
	int rc;

	if (!*rest || *rest == '?')
		return parse_path(parse, rest);
	if (rest[0] != '/' || rest[1] != '/')
		return refuse(parse, "scheme: '//' must follow the ':'");
	rest += 2;
	end = rest + strcspn(rest, "/?");
	/*
	 * A raw '/' or '?' in a password ends the authority early: the rest must not pass for a
	 * path.
	 */
	if (end > rest && strchr(end, '@'))
		return refuse(
			parse,
			"user: write '/' and '?' in a user or password as %%2F and %%3F, and an "
			"'@' after the host as %%40");
	rc = parse_authority(parse, rest, end);
	if (rc == 0)
		rc = parse_path(parse, end);
	/* The URL of a socket lacks its path rather than a host, which the caller says. */
	if (rc == 0 && !*parse->url->host && !*parse->url->path &&
	    !strstr(parse->url->scheme, "+unix"))
		return refuse(parse, "host: missing");
	return rc;
}

/*
 * A "host:port" is not a URL, but it is clear what is meant. Nothing else may follow: what is not a
 * port may be a password.
 */
static int refuse_bare_address(struct parse *parse)
{
	size_t host = strspn(parse->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                                  "0123456789.-_");
	const char *port = parse->text + host + 1;
	size_t digits;

	if (host == 0 || parse->text[host] != ':')
		return 0;
	digits = strspn(port, "0123456789");
	if (digits == 0 || digits > 5 || port[digits])
		return 0;
	return refuse(parse, "scheme: missing; write %s://%.200s",
	              strcmp(port, "2181") == 0 ? "zk" : "redis", parse->text);
}

static int parse_scheme(struct parse *parse)
{
	const char *end = parse->text;

	if (refuse_bare_address(parse))
		return HF_EINVAL;
	while (isascii((unsigned char)*end) &&
	       (isalnum((unsigned char)*end) || strchr("+-.", *end)) && *end)
		end++;
	if (*end != ':' || !isalpha((unsigned char)*parse->text))
		return refuse(parse, "scheme: missing; a URL begins like redis://host");
	parse->url->scheme = copy_raw(parse, parse->text, end);
	return parse_rest(parse, end + 1);
}

int hf__url_init(struct hf__url *url, const char *text, char *why, size_t why_size)
{
	struct parse parse = {.url = url, .text = text, .why = why, .why_size = why_size};
	int rc;

	assert(url && text);
	memset(url, 0, sizeof(*url));
	rc = check_bytes(&parse);
	if (rc < 0)
		return rc;
	/* The hosts are kept twice. A NUL replaces a separator, except for a few of them. */
	url->block_size = 2 * strlen(text) + HF__URL_PAIRS_MAX + 16;
	url->block = malloc(url->block_size);
	if (!url->block) {
		memset(url, 0, sizeof(*url));
		return HF_ENOMEM;
	}
	parse.out = url->block;
	rc = parse_scheme(&parse);
	assert((size_t)(parse.out - url->block) <= url->block_size);
	if (rc < 0)
		hf__url_done(url);
	return rc;
}

void hf__url_done(struct hf__url *url)
{
	if (url->block)
		explicit_bzero(url->block, url->block_size);
	free(url->block);
	memset(url, 0, sizeof(*url));
}
