/* Finds a client's password, or reads the file that holds it. */
#include "api/draft.h"

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

/* What was given may be the password itself; only a text with a '/' is taken for a path. */
static const char *shown_path(const char *file)
{
	return strchr(file, '/') ? file : "the file";
}

static int read_file(struct hf__draft *draft, const char *file)
{
	/* There is room for "\r\n", and for one more byte that shows that the line is too long. */
	char line[HF__DRAFT_TEXT_MAX + 3] = "";
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t used = fd < 0 ? -1 : read_line(fd, line, sizeof(line) - 1);
	char *end;
	int rc;

	if (used < 0) {
		(void)hf__draft_refuse(draft, "password_file: cannot read %.200s: %m",
		                       shown_path(file));
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
		rc = hf__draft_refuse(draft, "password_file: the first line of %.200s is empty",
		                      shown_path(file));
	else if (strlen(line) != (size_t)(end - line))
		rc = hf__draft_refuse(draft, "password_file: contains a control character");
	else
		rc = hf__draft_copy(draft, "password_file", line, &draft->settings->password);
out:
	explicit_bzero(line, sizeof(line));
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* Option, URL, environment: only the first that gives a password, as text or file, is used. */
static int take_password(struct hf__draft *draft)
{
	const struct hf__setting *text = HF__DRAFT_ROW(password);
	const struct hf__setting *file = HF__DRAFT_ROW(password_file);
	bool embedded = draft->settings->embedded;
	const struct {
		const char *text, *file;
	} sources[] = {
		{draft->options.password, draft->options.password_file},
		{draft->url.password, hf__draft_in_url(draft, file)},
		{embedded ? NULL : hf__draft_variable(text->variable),
	         embedded ? NULL : hf__draft_variable(file->variable)},
	};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (sources[i].text && sources[i].file)
			return hf__draft_refuse(draft,
			                        "password: given both as text and as a file");
		if (sources[i].text)
			return hf__draft_copy(draft, "password", sources[i].text,
			                      &draft->settings->password);
		if (sources[i].file)
			return read_file(draft, sources[i].file);
	}
	return 0;
}

/* A user without a password logs in with an empty one: the server may have users that need none. */
int hf__password_take(struct hf__draft *draft)
{
	struct hf__settings *settings = draft->settings;
	int rc = take_password(draft);

	if (rc < 0)
		return rc;
	if (settings->embedded && (settings->user || settings->password))
		return hf__draft_refuse(draft, "%s: not for embedded: URLs",
		                        settings->user ? "user" : "password");
	if (settings->user && !settings->password) {
		settings->password = strdup("");
		return settings->password ? 0 : HF_ENOMEM;
	}
	if (!settings->user && settings->password && !*settings->password) {
		free(settings->password);
		settings->password = NULL;
	}
	return 0;
}
