/* Finds a client's password, or reads the file that holds it. */
#include "api/draft.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads up to size bytes or a newline. Returns the number of bytes, or -1 with errno. */
static ssize_t read_line(int fd, char *line, size_t size)
{
	size_t used = 0;

	while (used < size && !memchr(line, '\n', used)) {
		ssize_t n = read(fd, line + used, size - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* What was given may be the password itself; only a text with a '/' is treated as a path. */
static const char *shown_path(const char *file)
{
	return strchr(file, '/') ? file : "the file";
}

static int read_file(struct hf__draft *draft, const char *key, const char *file,
                     char **ret_password)
{
	/* There is room for "\r\n", and for one more byte that shows that the line is too long. */
	char line[HF__DRAFT_TEXT_MAX + 3] = "";
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t used = fd < 0 ? -1 : read_line(fd, line, sizeof(line) - 1);
	char *end;
	int rc;

	if (used < 0) {
		(void)hf__draft_refuse(draft, "%s: cannot read %.200s: %m", key, shown_path(file));
		rc = HF_ESYSTEM;
		goto out;
	}
	end = memchr(line, '\n', (size_t)used);
	if (!end)
		end = line + used;
	else if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	if (end == line)
		rc = hf__draft_refuse(draft, "%s: the first line of %.200s is empty", key,
		                      shown_path(file));
	else if (strlen(line) != (size_t)(end - line))
		rc = hf__draft_refuse(draft, "%s: contains a control character", key);
	else
		rc = hf__draft_copy(draft, key, line, ret_password);
out:
	explicit_bzero(line, sizeof(line));
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static const char *option_of(const struct hf__draft *draft, const struct hf__setting *setting)
{
	return *(const char *const *)((const char *)&draft->options + setting->option_at);
}

/* Option, URL, environment: only the first that gives a password, as text or file, is used. */
static int take_password(struct hf__draft *draft, const struct hf__setting *file,
                         char **ret_password)
{
	const struct hf__setting *text = file - 1;
	bool embedded = draft->settings->embedded;
	bool in_user_part = text == HF__DRAFT_ROW(password);
	const struct {
		const char *text, *file;
	} sources[] = {
		{option_of(draft, text), option_of(draft, file)},
		{in_user_part ? draft->url.password : NULL, hf__draft_in_url(draft, file)},
		{embedded ? NULL : hf__draft_variable(text->variable),
	         embedded ? NULL : hf__draft_variable(file->variable)},
	};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (sources[i].text && sources[i].file)
			return hf__draft_refuse(draft, "%s: given both as text and as a file",
			                        text->key);
		if (sources[i].text)
			return hf__draft_copy(draft, text->key, sources[i].text, ret_password);
		if (sources[i].file)
			return read_file(draft, file->key, sources[i].file, ret_password);
	}
	return 0;
}

/* A user without a password logs in with an empty one: the server may have users that need none. */
int hf__password_take(struct hf__draft *draft, const struct hf__setting *file)
{
	assert(file->type == HF__SETTING_PASSWORD_FILE && file[-1].type == HF__SETTING_PASSWORD &&
	       file[-2].type == HF__SETTING_USER);
	char *settings = (char *)draft->settings;
	char **password = (char **)(settings + file->stored_at);
	const char *user = *(char **)(settings + file[-2].stored_at);
	int rc = take_password(draft, file, password);

	if (rc < 0)
		return rc;
	if (draft->settings->embedded && (user || *password))
		return hf__draft_refuse(draft, "%s: not for embedded: URLs",
		                        file[user ? -2 : -1].key);
	if (user && !*password) {
		*password = strdup("");
		return *password ? 0 : HF_ENOMEM;
	}
	if (!user && *password && !**password) {
		free(*password);
		*password = NULL;
	}
	return 0;
}
