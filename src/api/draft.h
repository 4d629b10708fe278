/* A draft: the settings of a client while they are being gathered. */
#ifndef HF_API_DRAFT_H
#define HF_API_DRAFT_H

#include "api/setting.h"
#include "api/settings.h"
#include "base/url.h"

#define HF__DRAFT_TEXT_MAX 4096 /* bytes of any text */

struct hf__draft {
	struct hf__settings *settings;
	hf_client_options options;
	struct hf__url url;
	const char *in_url[HF__SETTING_ROWS]; /* what the URL says, in the order of the table */
	char *why;
	size_t why_size;
};

/* The row for a field of hf_client_options. */
#define HF__DRAFT_ROW(name) hf__draft_row(offsetof(hf_client_options, name))
const struct hf__setting *hf__draft_row(size_t option_at);

/* What the URL says about a setting, or NULL. */
const char *hf__draft_in_url(const struct hf__draft *draft, const struct hf__setting *setting);

/*
 * A variable of the environment, or NULL. An empty one counts as unset, and so do all of them in a
 * program with raised privileges.
 */
const char *hf__draft_variable(const char *name);

/* Writes the reason and returns HF_EINVAL. */
__attribute__((format(printf, 2, 3))) int hf__draft_refuse(struct hf__draft *draft,
                                                           const char *format, ...);

/* Checks and copies a text. 0, HF_EINVAL with a reason that begins with the name, HF_ENOMEM. */
int hf__draft_copy(struct hf__draft *draft, const char *name, const char *text, char **ret_text);

/* ---- address.c ---- */
/* Fills in what the URL's scheme, hosts and path say. */
int hf__address_take(struct hf__draft *draft);
/* The part of the URL's path that is the number of a database, or NULL. */
const char *hf__address_database(const struct hf__draft *draft);
/* Makes the text that stands for the address in messages. */
int hf__address_show(struct hf__draft *draft);

/* ---- password.c ---- */
/*
 * Fills in a password; if there is none it stays NULL. `file` is the row of its file, which follows
 * the row of its text, which follows that of the user.
 */
int hf__password_take(struct hf__draft *draft, const struct hf__setting *file);

#endif
