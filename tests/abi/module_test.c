/* The shared library uses the TLS module of its own build, and refuses any other. */
#include <dlfcn.h>
#include <string.h>

#include <holdfast/holdfast.h>

#include "support/check.h"

/* The functions of a library that this program was not linked with. */
struct library {
	int (*open)(const char *url, const hf_client_options *options, hf_client **ret_client);
	const char *(*detail)(void);
};

static struct library load(const char *path)
{
	struct library library;
	void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!file)
		fail_msg("%s", dlerror());
	*(void **)&library.open = dlsym(file, "hf_client_open");
	*(void **)&library.detail = dlsym(file, "hf_error_detail");
	assert_true(library.open && library.detail);
	return library;
}

/* Nobody listens on port 1, so without a server the best result is HF_EUNREACHABLE. */
static int open_with_tls(const struct library *library)
{
	hf_client *client = NULL;
	return library->open("rediss://127.0.0.1:1", NULL, &client);
}

static void module_of_the_same_build_is_used(void **state)
{
	struct library library = load(HF_LIBRARY);
	(void)state;
	assert_int_equal(open_with_tls(&library), HF_EUNREACHABLE);
}

static void module_of_another_build_is_refused(void **state)
{
	struct library library = load(HF_LIBRARY_WITH_OTHER_MODULE);
	(void)state;
	assert_int_equal(open_with_tls(&library), HF_ENOTSUP);
	assert_non_null(strstr(library.detail(), "same build"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(module_of_the_same_build_is_used),
		cmocka_unit_test(module_of_another_build_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
