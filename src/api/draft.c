/* What all files that gather settings share: rows, variables, texts and refusals. */
#include "api/draft.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct hf__setting *hf__draft_row(size_t option_at)
{
	size_t i = 0;
	while (i < HF__SETTING_ROWS && hf__setting_table[i].option_at != option_at)
		i++;
	assert(i < HF__SETTING_ROWS);
	return &hf__setting_table[i];
}

const char *hf__draft_in_url(const struct hf__draft *draft, const struct hf__setting *setting)
{
	return draft->in_url[setting - hf__setting_table];
}

const char *hf__draft_variable(const char *name)
{
	const char *text = name ? secure_getenv(name) : NULL;
	return text && *text ? text : NULL;
}

int hf__draft_refuse(struct hf__draft *draft, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(draft->why, draft->why_size, format, args);
	va_end(args);
	return HF_EINVAL;
}

static int check(struct hf__draft *draft, const char *name, const char *text)
{
	if (strnlen(text, HF__DRAFT_TEXT_MAX + 1) > HF__DRAFT_TEXT_MAX)
		return hf__draft_refuse(draft, "%s: longer than %d bytes", name,
		                        HF__DRAFT_TEXT_MAX);
	for (const unsigned char *at = (const unsigned char *)text; *at; at++)
		if (*at < 0x20 || *at == 0x7f)
			return hf__draft_refuse(draft, "%s: contains a control character", name);
	return 0;
}

int hf__draft_copy(struct hf__draft *draft, const char *name, const char *text, char **ret_text)
{
	int rc = check(draft, name, text);
	if (rc < 0)
		return rc;
	*ret_text = strdup(text);
	return *ret_text ? 0 : HF_ENOMEM;
}
