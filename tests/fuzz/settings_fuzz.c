/* Fuzz target of URLs and options: what is accepted keeps its limits, and no password is shown. */
#include <string.h>

#include "api/setting.h"
#include "api/settings.h"
#include "fuzz/replay.h"
#include "redis/nat.h"

#define SECRET   "zQ7xKw"
#define WHY_SIZE 700

static struct hf__settings settings;
static char why[WHY_SIZE];

static void check_texts(void)
{
	CHECK(settings.shown && settings.shown[0]);
	CHECK(settings.client_name && strlen(settings.client_name) <= 4096);
	for (int i = 0; i < settings.host_count; i++) {
		const struct hf__host *host = &settings.host_list[i];

		CHECK(host->name[0] && host->port >= 1 && host->port <= 65535);
	}
	if (settings.nat)
		CHECK(hf__nat_is_valid(settings.nat));
}

static int64_t stored_number(const struct hf__setting *row)
{
	const char *at = (const char *)&settings + row->stored_at;

	return row->type == HF__SETTING_DURATION ? *(const int64_t *)at : *(const int *)at;
}

/* On ZooKeeper the session replaces the watchdog, so only the session's limits apply. */
static void check_numbers(void)
{
	for (size_t i = 0; i < HF__SETTING_ROWS; i++) {
		const struct hf__setting *row = &hf__setting_table[i];
		bool is_number =
			row->type == HF__SETTING_DURATION || row->type == HF__SETTING_COUNT;

		if (!is_number || (settings.zookeeper && strcmp(row->key, "session") == 0))
			continue;
		CHECK(stored_number(row) >= row->low && stored_number(row) <= row->high);
	}
}

/* Each URL names one kind of address, and the backend's view has the same. */
static void check_address(void)
{
	int ways = (settings.host != NULL) + (settings.socket_path != NULL) +
	           (settings.hosts != NULL) + settings.embedded + (settings.host_count > 0);

	CHECK(ways == 1);
	CHECK(settings.zookeeper == (settings.hosts != NULL));
	CHECK(!settings.host || (settings.port >= 1 && settings.port <= 65535));
	if (settings.zookeeper)
		CHECK(settings.zk.hosts == settings.hosts && settings.chroot &&
		      settings.session_ms <= INT32_MAX);
	else
		CHECK(settings.redis.password == settings.password &&
		      settings.redis.host == settings.host);
}

/* The struct is zeroed after a failure, and freeing it twice is allowed. */
static void check_settings(const char *url, const hf_client_options *options)
{
	static const struct hf__settings zero;
	int rc;

	memset(why, 0, sizeof why);
	rc = hf__settings_init(&settings, url, options, why, sizeof why);
	if (rc == 0) {
		check_texts();
		check_numbers();
		check_address();
	} else {
		CHECK(rc == HF_EINVAL || rc == HF_ESYSTEM);
		CHECK(why[0] && strlen(why) < sizeof why);
		CHECK(memcmp(&settings, &zero, sizeof zero) == 0);
	}
	hf__settings_done(&settings);
	hf__settings_done(&settings);
}

/* Puts a secret where a password is written; nothing of it may be shown, whatever follows it. */
static void check_secret(const char *rest)
{
	static const char *const before[] = {
		"redis://u:",         "rediss://:",      "redis+sentinel://u:",
		"redis+cluster://u:", "redis+unix://u:", "zk://u:"};
	char url[5000];

	if (strstr(rest, SECRET))
		return; /* the fuzzer has learnt it */
	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		if (snprintf(url, sizeof url, "%s" SECRET "%s", before[i], rest) >= (int)sizeof url)
			return;
		memset(why, 0, sizeof why);
		if (hf__settings_init(&settings, url, NULL, why, sizeof why) == 0)
			CHECK(!strstr(settings.shown, SECRET));
		CHECK(!strstr(why, SECRET));
		hf__settings_done(&settings);
	}
}

/* The first byte chooses the option, and the rest is its value. */
static void set_option(hf_client_options *options, const char *text)
{
	const struct hf__setting *row = &hf__setting_table[(unsigned char)*text % HF__SETTING_ROWS];
	char *at = (char *)options + row->option_at;

	if (row->type == HF__SETTING_DURATION || row->type == HF__SETTING_WIDE_FLAG)
		*(int64_t *)at = strtoll(text + 1, NULL, 10);
	else if (row->type == HF__SETTING_COUNT || row->type == HF__SETTING_FLAG)
		*(int *)at = (int)strtoll(text + 1, NULL, 10);
	else
		*(const char **)at = text + 1;
}

/* The texts of the input end with NUL: the URL, and then the options. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hf_client_options options = {.size = sizeof options};
	char *copy = malloc(size + 1);
	const char *end = copy + size;

	CHECK(copy);
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	for (const char *at = copy + strlen(copy) + 1; at < end; at += strlen(at) + 1)
		if (*at)
			set_option(&options, at);
	check_settings(copy, NULL);
	check_settings(copy, &options);
	check_secret(copy);
	free(copy);
	return 0;
}
