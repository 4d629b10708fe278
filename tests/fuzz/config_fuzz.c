/*
 * Fuzz target of the configuration files: a file whose URL is not used gives away no credentials.
 *
 * The part of the command that reads them is included, since it keeps what it has read until the
 * program ends.
 */
#include "../../cli/connect.c"

#include "api/client.h"
#include "api/settings.h"
#include "fuzz/replay.h"

static const uint8_t *content[2]; /* of the user's file, and of the common one */
static size_t length[2];
static bool complained;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_hf_client_open(const char *url, const hf_client_options *options, hf_client **ret);
bool __wrap_out_put(struct out *out, const char *text, size_t size);

FILE *__wrap_fopen(const char *path, const char *mode)
{
	int i = strcmp(path, "/nowhere/holdfast/config") == 0 ? 0
	        : strcmp(path, common_path) == 0              ? 1
	                                                      : -1;

	if (i < 0)
		return __real_fopen(path, mode);
	errno = ENOENT;
	return length[i] > 0 ? fmemopen((void *)(uintptr_t)content[i], length[i], "r") : NULL;
}

bool __wrap_out_put(struct out *out, const char *text, size_t size)
{
	(void)out;
	CHECK(size > 0 && text[size - 1] == '\n');
	complained = true;
	return true;
}

/* The text of an option comes from this entry of the files. */
static void check_option(const char *option, int entry, const char *url)
{
	const struct entry *from = &entries[entry];

	if (!option)
		return;
	CHECK(option == from->value);
	if (from->of_server && entries[URL].value) {
		CHECK(url == entries[URL].value);
		CHECK(from->file == entries[URL].file || from->file == 1);
	}
	if (from->of_server)
		CHECK(strncmp(url, "embedded:", 9) != 0 || url == entries[URL].value);
}

/* Has the real checks of a client's settings, and stops there. */
int __wrap_hf_client_open(const char *url, const hf_client_options *options, hf_client **ret)
{
	struct hf__settings settings;
	char why[HF__DETAIL_SIZE];
	int rc;

	(void)ret;
	check_option(options->user, USER, url);
	check_option(options->tls_ca_file, TLS_CA, url);
	check_option(options->tls_cert_file, TLS_CERT, url);
	check_option(options->tls_key_file, TLS_KEY, url);
	check_option(options->tls_server_name, TLS_SERVER_NAME, url);
	check_option(options->password_file, PASSWORD_FILE, url);
	hf_client_options given = *options;
	given.password_file = NULL; /* no file of this machine is read */
	rc = hf__settings_init(&settings, url, &given, why, sizeof why);
	if (rc < 0)
		return hf__error(rc, "%s", why);
	hf__settings_done(&settings);
	return hf__error(HF_EUNREACHABLE, "nothing is connected here");
}

static void forget_entries(void)
{
	for (int i = 0; i < ENTRIES; i++) {
		free(entries[i].value);
		entries[i].value = NULL;
		entries[i].file = 0;
	}
}

/* The first byte says which other source has a URL; the second, how long the first file is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const urls[] = {NULL, "redis://h", "embedded:", "zk://h"};
	struct cli_settings settings = {0};
	hf_client_options options = {0};
	char user[64];

	if (size < 2)
		return 0;
	cli_complain_through((struct out *)entries); /* never used as such */
	CHECK(setenv("XDG_CONFIG_HOME", "/nowhere", 1) == 0 && unsetenv("HOLDFAST_URL") == 0);
	settings.url = urls[data[0] % 4];
	if (urls[data[0] / 4 % 4])
		CHECK(setenv("HOLDFAST_URL", urls[data[0] / 4 % 4], 1) == 0);
	length[0] = data[1] * 8u < size - 2 ? data[1] * 8u : size - 2;
	length[1] = size - 2 - length[0];
	content[0] = data + 2;
	content[1] = content[0] + length[0];
	complained = false;
	CHECK(cli_open(&settings, &options, &(hf_client *){NULL}) != 0);
	CHECK(complained);
	cli_find_user(&settings, user, sizeof user);
	CHECK(strlen(user) < sizeof user && cli_find_url(&settings));
	(void)cli_is_zookeeper(&settings);
	(void)cli_reopen(&settings, &(hf_client_options){0}, &(hf_client *){NULL});
	forget_entries();
	return 0;
}
