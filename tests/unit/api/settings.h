/* What the tests of settings share. */
#ifndef TESTS_UNIT_API_SETTINGS_H
#define TESTS_UNIT_API_SETTINGS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/settings.h"
#include "support/check.h"

static struct hf__settings settings;
static char why[512];

static inline int clear_environment(void **state)
{
	static const char *const names[] = {"URL",    "USER",     "PASSWORD", "PASSWORD_FILE",
	                                    "TLS_CA", "TLS_CERT", "TLS_KEY",  "AUTH"};
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "HOLDFAST_%s", names[i]);
		unsetenv(name);
	}
	return 0;
}

static inline int free_settings(void **state)
{
	(void)state;
	hf__settings_done(&settings);
	return 0;
}

static inline void take(const char *url, const hf_client_options *options)
{
	hf__settings_done(&settings);
	if (hf__settings_init(&settings, url, options, why, sizeof(why)) != 0)
		fail_msg("%s: %s", url ? url : "(null)", why);
}

static inline void check_refused_with(const char *url, const hf_client_options *options,
                                      const char *expected)
{
	strcpy(why, "nothing said");
	hf__settings_done(&settings);
	assert_int_equal(hf__settings_init(&settings, url, options, why, sizeof(why)), HF_EINVAL);
	assert_string_equal(why, expected);
	assert_null(settings.host);
}

static inline void check_refused(const char *url, const char *expected)
{
	check_refused_with(url, NULL, expected);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, clear_environment, free_settings)

#endif
