/* Which server, and how to get in: options, environment, configuration files. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 4096

/* What a configuration file may say. */
struct entry {
	const char *key;
	char *value;
};

enum { URL, PASSWORD_FILE, USER, TLS_CA, TLS_CERT, TLS_KEY, TLS_SERVER_NAME, NAME_PREFIX, ENTRIES };

static struct entry entries[ENTRIES] = {
	[URL] = {"url", NULL},
	[PASSWORD_FILE] = {"password_file", NULL},
	[USER] = {"user", NULL},
	[TLS_CA] = {"tls_ca", NULL},
	[TLS_CERT] = {"tls_cert", NULL},
	[TLS_KEY] = {"tls_key", NULL},
	[TLS_SERVER_NAME] = {"tls_server_name", NULL},
	[NAME_PREFIX] = {"name_prefix", NULL},
};

bool cli_take_common(struct cli_settings *settings, int letter, const char *value)
{
	if (letter == CLI_URL)
		settings->url = value;
	else if (letter == CLI_PASSWORD_FILE)
		settings->password_file = value;
	else
		return false;
	return true;
}

static char *trim(char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	size_t length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		text[--length] = 0;
	return text;
}

/* What an earlier file said stays. */
static bool take_entry(const char *key, const char *value)
{
	for (int i = 0; i < ENTRIES; i++) {
		if (strcmp(entries[i].key, key) != 0)
			continue;
		if (!entries[i].value)
			entries[i].value = strdup(value);
		return true;
	}
	return false;
}

static int read_line(const char *path, int number, char *line)
{
	char *key = trim(line);
	if (!*key || *key == '#')
		return 0;
	char *equals = strchr(key, '=');
	if (!equals) {
		cli_complain("%s:%d: not 'key = value'", path, number);
		return EXIT_CONFIG;
	}
	*equals = 0;
	key = trim(key);
	if (take_entry(key, trim(equals + 1)))
		return 0;
	fprintf(stderr, "holdfast: %s:%d: unknown key '", path, number);
	cli_plain_text(stderr, key, strlen(key));
	fputs("'; known are", stderr);
	for (int i = 0; i < ENTRIES; i++)
		fprintf(stderr, "%s %s", i ? "," : "", entries[i].key);
	fputc('\n', stderr);
	return EXIT_CONFIG;
}

static int read_file(const char *path)
{
	char line[LINE_SIZE];
	int rc = 0;
	FILE *file = fopen(path, "re");
	if (!file) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		cli_complain("%s: %s", path, strerror(errno));
		return EXIT_CONFIG;
	}
	for (int number = 1; !rc && fgets(line, sizeof line, file); number++)
		rc = read_line(path, number, line);
	if (!rc && ferror(file)) {
		cli_complain("%s: %s", path, strerror(errno));
		rc = EXIT_CONFIG;
	}
	fclose(file);
	return rc;
}

static int read_files(void)
{
	char path[LINE_SIZE];
	const char *folder = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	int length = -1;
	if (folder && *folder == '/')
		length = snprintf(path, sizeof path, "%s/holdfast/config", folder);
	else if (home && *home)
		length = snprintf(path, sizeof path, "%s/.config/holdfast/config", home);
	int rc = length > 0 && (size_t)length < sizeof path ? read_file(path) : 0;
	return rc ? rc : read_file("/etc/holdfast/config");
}

static void fill(const char **place, int entry)
{
	if (!*place)
		*place = entries[entry].value;
}

static const char *find_url(const struct cli_settings *settings)
{
	const char *url = settings->url ? settings->url : getenv("HOLDFAST_URL");
	if (url && *url)
		return url;
	if (entries[URL].value)
		return entries[URL].value;
	cli_complain("no server is configured: using a private one, for this user and this host "
	             "only (--url embedded: is silent)");
	return "embedded:";
}

int cli_open(const struct cli_settings *settings, hf_client_options *options,
             hf_client **ret_client)
{
	int rc = read_files();
	if (rc)
		return rc;
	const char *url = find_url(settings);
	options->size = sizeof(*options);
	options->password_file = settings->password_file;
	fill(&options->password_file, PASSWORD_FILE);
	fill(&options->user, USER);
	fill(&options->tls_ca_file, TLS_CA);
	fill(&options->tls_cert_file, TLS_CERT);
	fill(&options->tls_key_file, TLS_KEY);
	fill(&options->tls_server_name, TLS_SERVER_NAME);
	fill(&options->name_prefix, NAME_PREFIX);
	rc = hf_client_open(url, options, ret_client);
	if (!rc)
		return 0;
	int status = cli_failed(rc);
	return rc == HF_EINVAL || rc == HF_ESYSTEM ? EXIT_CONFIG : status;
}
