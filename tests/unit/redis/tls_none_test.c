/* Checks what a build without OpenSSL says about rediss:// URLs. */
#include "support/check.h"

#include <string.h>

#include <holdfast/holdfast.h>

static void a_tls_url_is_refused_with_what_to_do(void **state)
{
	static const char *const urls[] = {"rediss://127.0.0.1:1", "valkeys://127.0.0.1:1"};
	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		hf_client *client = NULL;
		assert_int_equal(hf_client_open(urls[i], NULL, &client), HF_ENOTSUP);
		assert_null(client);
		assert_non_null(strstr(hf_error_detail(), "this build has no TLS"));
		assert_non_null(strstr(hf_error_detail(), "HF_TLS=ON"));
	}
}

static void a_plain_url_needs_no_tls(void **state)
{
	hf_client *client = NULL;
	(void)state;
	assert_int_equal(hf_client_open("redis://127.0.0.1:1", NULL, &client), HF_EUNREACHABLE);
	assert_null(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tls_url_is_refused_with_what_to_do),
		cmocka_unit_test(a_plain_url_needs_no_tls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
