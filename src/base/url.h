/* Takes a URL apart: scheme://[user[:password]@]host[:port][/path][?key=value&…]. */
#ifndef HF_BASE_URL_H
#define HF_BASE_URL_H

#include <stddef.h>

#define HF__URL_MAX       4096 /* bytes of a URL */
#define HF__URL_PAIRS_MAX 32   /* key=value pairs in its query */

struct hf__url_pair {
	const char *key;   /* never empty */
	const char *value; /* empty if there was no '=' */
};

/*
 * The parts of one URL with percent escapes decoded. All texts are in one block that the struct
 * owns. "embedded:?lazy=yes" has no "//": then host and authority are NULL.
 */
struct hf__url {
	const char *scheme;   /* as written */
	const char *user;     /* NULL if absent, may be empty */
	const char *password; /* NULL if absent, may be empty */
	const char *host;     /* without the brackets of IPv6; empty in "scheme:///path" */
	int port;             /* 0 if absent */
	/* Hosts and ports as written, without the user part; escapes are not decoded. */
	const char *authority;
	const char *path; /* with its leading '/', or empty */
	struct hf__url_pair pairs[HF__URL_PAIRS_MAX];
	size_t pair_count;
	char *block;       /* what all the texts point into */
	size_t block_size; /* wiped as a whole */
};

/*
 * Returns 0, HF_ENOMEM, or HF_EINVAL with a text that names the part at fault. The text never shows
 * anything that could be a password, except that a bare "host:12345" is treated as a host and a
 * port. After a failure the struct is zeroed.
 *
 * Several hosts, "h1:2181,h2:2181", are left to the caller: host has all of them, and port is 0.
 * Messages count bytes from 1.
 */
int hf__url_init(struct hf__url *url, const char *text, char *why, size_t why_size);

/* Wipes and frees. A zeroed struct is allowed. */
void hf__url_done(struct hf__url *url);

#endif
