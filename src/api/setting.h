/* The settings of a client: one row each, with all that is known about it. */
#ifndef HF_API_SETTING_H
#define HF_API_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__SETTING_ROWS 31

enum hf__setting_type {
	HF__SETTING_TEXT,         /* a char * in hf_client_options and in struct hf__settings */
	HF__SETTING_WORD,         /* the same, printable ASCII without spaces */
	HF__SETTING_USER,         /* the same, but empty counts as not given */
	HF__SETTING_COUNT,        /* an int in both */
	HF__SETTING_DURATION,     /* an int64_t in both, milliseconds; with a unit in the URL */
	HF__SETTING_FLAG,         /* an int in the options, a bool in the settings */
	HF__SETTING_WIDE_FLAG,    /* the same, but an int64_t in the options */
	HF__SETTING_PASSWORD,     /* never in the URL's query */
	HF__SETTING_PASSWORD_FILE /* gathered together with the password */
};

/* Which servers a setting is for; `tls` limits it further. */
enum hf__setting_backend {
	HF__SETTING_ANY,
	HF__SETTING_REDIS,
	HF__SETTING_SENTINEL,
	HF__SETTING_ZK
};

struct hf__setting {
	const char *key;      /* in the URL's query; messages and documents use this name */
	const char *field;    /* in hf_client_options */
	const char *variable; /* in the environment, or NULL */
	enum hf__setting_type type;
	enum hf__setting_backend backend;
	bool tls;         /* only for URLs with TLS */
	size_t option_at; /* offset in hf_client_options; unique */
	size_t stored_at; /* offset in struct hf__settings */
	int64_t low;      /* range of a count or duration */
	int64_t high;
	int64_t preset;         /* default of a number */
	const char *text;       /* default of a text, or NULL */
	const char *no_text;    /* what a text without a default stands for, in the documents */
	const char *values;     /* those of a text that has only some, for the documents; or NULL */
	const char *why_not_zk; /* instead of the general reason, or NULL */
	const char *about;      /* one line for the documents */
};

extern const struct hf__setting hf__setting_table[HF__SETTING_ROWS];

#endif
