/* Connecting: which server, from options, the environment and the configuration files. */
#include "aside.h"
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE    4096
#define LETTERS_SIZE 32

/* A setting that a configuration file may contain. */
struct entry {
	const char *key;
	bool of_server; /* belongs to the file's url, and must not be used for another server */
	char *value;
	int file; /* the file that contains it: 1 or 2 */
};

enum { URL, PASSWORD_FILE, USER, TLS_CA, TLS_CERT, TLS_KEY, TLS_SERVER_NAME, NAME_PREFIX, ENTRIES };

static struct entry entries[ENTRIES] = {
	[URL] = {.key = "url"},
	[PASSWORD_FILE] = {.key = "password_file", .of_server = true},
	[USER] = {.key = "user", .of_server = true},
	[TLS_CA] = {.key = "tls_ca", .of_server = true},
	[TLS_CERT] = {.key = "tls_cert", .of_server = true},
	[TLS_KEY] = {.key = "tls_key", .of_server = true},
	[TLS_SERVER_NAME] = {.key = "tls_server_name", .of_server = true},
	[NAME_PREFIX] = {.key = "name_prefix"},
};

/* ---- options ---- */

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

/* Whether a long option has this letter or number. */
static bool is_known(const struct option *options, int letter)
{
	for (; options->name; options++)
		if (options->val == letter)
			return true;
	return false;
}

/*
 * getopt_long() stores an unknown letter in optopt; that letter may be in the middle of the next
 * argument. Any other wrong option is in the argument before optind. If the last argument is a
 * letter whose value is missing, musl's optind is one higher than glibc's.
 */
void cli_describe_fault(int letter, char **argv, const struct option *options,
                        char ret_text[CLI_FAULT_SIZE], char ret_name[CLI_FAULT_SIZE])
{
	const char *word = argv[optind - 1] ? argv[optind - 1] : argv[optind - 2];
	bool known = optopt != 0 && is_known(options, optopt);
	char name[CLI_FAULT_SIZE / 2];
	if ((optopt != 0 && !known) || strncmp(word, "--", 2) != 0)
		snprintf(name, sizeof name, "-%c", optopt);
	else
		snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	if (letter == ':')
		snprintf(ret_text, CLI_FAULT_SIZE, "%s needs a value", name);
	else if (known)
		snprintf(ret_text, CLI_FAULT_SIZE, "%s does not take a value", name);
	else
		snprintf(ret_text, CLI_FAULT_SIZE, "unknown%s option %s",
		         optopt ? "" : " or ambiguous", name);
	if (ret_name)
		snprintf(ret_name, CLI_FAULT_SIZE, "%s", name);
}

/* The letters of these options, as getopt_long() wants them; a missing value is reported. */
static void list_letters(const struct option *options, char ret_letters[LETTERS_SIZE])
{
	size_t n = 0;
	ret_letters[n++] = ':';
	for (; options->name && n + 3 < LETTERS_SIZE; options++)
		if (options->val > 0 && options->val < CLI_URL) {
			ret_letters[n++] = (char)options->val;
			if (options->has_arg == required_argument)
				ret_letters[n++] = ':';
		}
	ret_letters[n] = 0;
}

int cli_next_option(int argc, char **argv, const char *command, const struct option *options,
                    struct cli_settings *settings)
{
	char letters[LETTERS_SIZE];
	int letter;
	list_letters(options, letters);
	opterr = 0;
	do
		letter = getopt_long(argc, argv, letters, options, NULL);
	while (cli_take_common(settings, letter, optarg));
	if (letter == 'h') {
		cli_show_help(command);
		exit(fflush(stdout) ? EXIT_SYSTEM : 0);
	}
	if (letter == '?' || letter == ':') {
		char fault[CLI_FAULT_SIZE];
		cli_describe_fault(letter, argv, options, fault, NULL);
		cli_complain("%s: %s; see holdfast %s --help", command, fault, command);
		return '?';
	}
	return letter;
}

/* ---- files ---- */

static char *trim(char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	size_t length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		text[--length] = 0;
	return text;
}

/*
 * The first file that contains a setting wins. A file whose url is not used must not contribute
 * credentials either, or its password would be sent to another server.
 */
static const char *take_value(struct entry *entry, int file, const char *value)
{
	if (entry->value && entry->file == file)
		return "repeats a key; remove one of the two";
	bool stranger = entry->of_server && entries[URL].value && entries[URL].file != file;
	if (entry->value || stranger)
		return NULL;
	entry->value = strdup(value);
	entry->file = file;
	return entry->value ? NULL : "cannot be stored: out of memory";
}

static struct entry *find_entry(const char *key)
{
	for (int i = 0; i < ENTRIES; i++)
		if (strcmp(entries[i].key, key) == 0)
			return &entries[i];
	return NULL;
}

/* Returns NULL, or what is wrong with the line. */
static const char *read_line(int file, char *line)
{
	char *key = trim(line);
	if (!*key || *key == '#')
		return NULL;
	char *equals = strchr(key, '=');
	if (!equals)
		return "is not of the form 'key = value'";
	*equals = 0;
	struct entry *entry = find_entry(trim(key));
	if (!entry)
		return "has an unknown key; use url, password_file, user, tls_ca, tls_cert, "
		       "tls_key, tls_server_name or name_prefix";
	return take_value(entry, file, trim(equals + 1));
}

static int read_lines(FILE *stream, const char *path, int file)
{
	char line[LINE_SIZE];
	for (int number = 1; fgets(line, sizeof line, stream); number++) {
		bool cut = strlen(line) == sizeof line - 1 && line[sizeof line - 2] != '\n';
		const char *wrong = cut ? "is too long" : read_line(file, line);
		if (wrong) {
			cli_complain("%s: line %d %s", path, number, wrong);
			return EXIT_CONFIG;
		}
	}
	if (!ferror(stream))
		return 0;
	cli_complain("%s: %s", path, strerror(errno));
	return EXIT_CONFIG;
}

/* A missing file is not an error. */
static int read_file(const char *path, int file)
{
	FILE *stream = fopen(path, "re");
	if (!stream) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		cli_complain("%s: %s; make the file readable, or remove it", path, strerror(errno));
		return EXIT_CONFIG;
	}
	int rc = read_lines(stream, path, file);
	fclose(stream);
	return rc;
}

static char own_path[LINE_SIZE]; /* of the user's file */
static const char common_path[] = "/etc/holdfast/config";

static int read_files(void)
{
	const char *folder = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	int length = 0;
	if (folder && *folder == '/')
		length = snprintf(own_path, sizeof own_path, "%s/holdfast/config", folder);
	else if (home && *home)
		length = snprintf(own_path, sizeof own_path, "%s/.config/holdfast/config", home);
	if (length < 0 || (size_t)length >= sizeof own_path) {
		cli_complain("XDG_CONFIG_HOME or HOME is too long to be part of a path");
		return EXIT_CONFIG;
	}
	int rc = length > 0 ? read_file(own_path, 1) : 0;
	return rc ? rc : read_file(common_path, 2);
}

/* ---- the client ---- */

/*
 * Returns the URL, or NULL if none is configured, and whether the files' credentials are for this
 * server.
 */
static const char *find_url(const struct cli_settings *settings, bool *ret_files_apply)
{
	const char *url = settings->url ? settings->url : getenv("HOLDFAST_URL");
	if (settings->url || (url && *url)) {
		*ret_files_apply = !entries[URL].value && strncmp(url, "embedded:", 9) != 0;
		return url;
	}
	*ret_files_apply = true;
	return entries[URL].value;
}

static void fill_from_files(const char **place, int entry, bool files_apply)
{
	if (!*place && (files_apply || !entries[entry].of_server))
		*place = entries[entry].value;
}

static int open_client(const struct cli_settings *settings, const char *url, bool files_apply,
                       hf_client_options *options, hf_client **ret_client)
{
	options->size = sizeof(*options);
	options->password_file = settings->password_file;
	fill_from_files(&options->password_file, PASSWORD_FILE, files_apply);
	fill_from_files(&options->user, USER, files_apply);
	fill_from_files(&options->tls_ca_file, TLS_CA, files_apply);
	fill_from_files(&options->tls_cert_file, TLS_CERT, files_apply);
	fill_from_files(&options->tls_key_file, TLS_KEY, files_apply);
	fill_from_files(&options->tls_server_name, TLS_SERVER_NAME, files_apply);
	fill_from_files(&options->name_prefix, NAME_PREFIX, files_apply);
	return hf_client_open(url, options, ret_client);
}

/* Whether an error that begins with this word is about a part of the URL or an option in it. */
static bool is_about_url(const char *detail, const char *url)
{
	static const char *const parts[] = {"URL",   "scheme", "host", "port",
	                                    "query", "path",   "db",   "chroot"};
	size_t length = strcspn(detail, ":");
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strlen(parts[i]) == length && strncmp(detail, parts[i], length) == 0)
			return true;
	if (length == strlen("user") && strncmp(detail, "user", length) == 0)
		return strchr(url, '@') != NULL;
	const char *query = strchr(url, '?');
	const char *found = query ? memmem(query, strlen(query), detail, length) : NULL;
	return found && found[length] == '=';
}

/* Says where the URL at fault is written, since it may be a forgotten file. */
static int report_invalid(const struct cli_settings *settings, const char *url)
{
	const char *detail = hf_error_detail();
	const char *file = entries[URL].file == 1 ? own_path : common_path;
	if (!is_about_url(detail, url))
		cli_complain("%s", detail);
	else if (settings->url || getenv(CLI_URL_IS_OPTION))
		cli_complain("--url: %s", detail);
	else if (url == entries[URL].value)
		cli_complain("%s: url: %s", file, detail);
	else
		cli_complain("HOLDFAST_URL: %s", detail);
	return EXIT_CONFIG;
}

int cli_open_unless_denied(const struct cli_settings *settings, hf_client_options *options,
                           hf_client **ret_client)
{
	bool files_apply;
	int rc = read_files();
	if (rc)
		return rc;
	const char *url = find_url(settings, &files_apply);
	if (!url) {
		cli_complain("no server is configured; using a private one for this user on this "
		             "host only (to use it without this message: --url embedded:)");
		url = "embedded:";
		files_apply = false;
	}
	rc = open_client(settings, url, files_apply, options, ret_client);
	if (!rc || rc == HF_EDENIED)
		return rc;
	if (rc == HF_EINVAL)
		return report_invalid(settings, url);
	int status = cli_report_failure(rc);
	return rc == HF_ESYSTEM || rc == HF_ENOTSUP ? EXIT_CONFIG : status;
}

int cli_open(const struct cli_settings *settings, hf_client_options *options,
             hf_client **ret_client)
{
	int rc = cli_open_unless_denied(settings, options, ret_client);
	return rc == HF_EDENIED ? cli_report_failure(rc) : rc;
}

static void close_client(void *arg)
{
	(void)hf_client_close(arg);
}

void cli_close(hf_client *client)
{
	(void)aside_call(close_client, client, CLI_CLOSE_MS);
}

int cli_reopen(const struct cli_settings *settings, hf_client_options *options,
               hf_client **ret_client)
{
	bool files_apply = false;
	const char *url = find_url(settings, &files_apply);
	if (!url)
		files_apply = false;
	return open_client(settings, url ? url : "embedded:", files_apply, options, ret_client);
}

const char *cli_find_url(const struct cli_settings *settings)
{
	bool files_apply;
	const char *url = find_url(settings, &files_apply);
	return url ? url : "embedded:";
}

bool cli_is_zookeeper(const struct cli_settings *settings)
{
	const char *url = cli_find_url(settings);
	return strncmp(url, "zk:", 3) == 0 || strncmp(url, "zks:", 4) == 0;
}

int cli_check_name(hf_client *client, const char *name)
{
	hf_lock *lock;
	int rc = hf_lock_open(client, HF_REENTRANT, name, &lock);
	if (rc)
		return cli_report_failure(rc);
	hf_lock_close(lock);
	return 0;
}

/* Reads the user from "redis://user:password@host", unless the name is percent-encoded. */
static bool read_user_of_url(const char *url, char *ret_user, size_t size)
{
	const char *at = url ? strstr(url, "://") : NULL;
	if (!at)
		return false;
	at += 3;
	size_t length = strcspn(at, ":@/?%");
	bool has_user =
		length > 0 && length < size && strchr(":@", at[length]) && strchr(at + length, '@');
	if (has_user)
		snprintf(ret_user, size, "%.*s", (int)length, at);
	return has_user;
}

void cli_find_user(const struct cli_settings *settings, char *ret_user, size_t size)
{
	bool files_apply;
	const char *url = find_url(settings, &files_apply);
	const char *user = files_apply ? entries[USER].value : NULL;
	if (!user && read_user_of_url(url, ret_user, size))
		return;
	if (!user)
		user = getenv("HOLDFAST_USER");
	snprintf(ret_user, size, "%s", user && *user ? user : "default");
}
