/* Fuzz target of the command line: it is understood or refused, and no password is repeated. */
#include <fcntl.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "api/client.h"
#include "api/settings.h"
#include "cli/out.h"
#include "cli/run.h"
#include "fuzz/replay.h"

#ifdef __has_feature
#define HAS_ASAN __has_feature(address_sanitizer)
#else
#define HAS_ASAN 0
#endif
#if HAS_ASAN || defined __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define EXPECT_LEAKS()    __lsan_disable()
#define EXPECT_NO_LEAKS() __lsan_enable()
#else
#define EXPECT_LEAKS()    ((void)0)
#define EXPECT_NO_LEAKS() ((void)0)
#endif

#define SECRET     "zQ7xKw"
#define MOST_WORDS 40

static char *words[MOST_WORDS + 4];
static int count;
static jmp_buf end_of_program;
static bool may_exit;

void __real_exit(int status) __attribute__((noreturn));
void __wrap_exit(int status) __attribute__((noreturn));
bool __wrap_out_put(struct out *out, const char *text, size_t length);
int __wrap_hf_client_open(const char *url, const hf_client_options *options, hf_client **ret);
int __wrap_cli_run(int argc, char **argv);
int __wrap_cli_elect(int argc, char **argv);
int __wrap_cli_run_name(int argc, char **argv);
int __wrap_cli_demo(int argc, char **argv);
int __wrap_cli_help(int argc, char **argv);
int __wrap_cli_embedded(int argc, char **argv);

/* ---- what the command would do ---- */

void __wrap_exit(int status)
{
	if (may_exit)
		longjmp(end_of_program, 1);
	__real_exit(status);
}

/* A complaint is one line that a terminal shows as it is. */
bool __wrap_out_put(struct out *out, const char *text, size_t length)
{
	(void)out;
	CHECK(length > 0 && text[length - 1] == '\n');
	for (size_t i = 0; i < length - 1; i++)
		CHECK((unsigned char)text[i] >= ' ' && text[i] != 127);
	CHECK(!memmem(text, length, SECRET, strlen(SECRET)));
	return true;
}

int __wrap_hf_client_open(const char *url, const hf_client_options *options, hf_client **ret)
{
	struct hf__settings settings;
	char why[HF__DETAIL_SIZE];
	hf_client_options given = *options;

	(void)ret;
	given.password_file = NULL; /* no file of this machine is read */
	int rc = hf__settings_init(&settings, url, &given, why, sizeof why);
	if (rc < 0)
		return hf__error(rc, "%s", why);
	hf__settings_done(&settings);
	return hf__error(HF_EUNREACHABLE, "nothing is connected here");
}

static int check_run(int argc, char **argv, enum run_form form)
{
	struct run_options options;
	int rc = run_read_options(argc, argv, form, &options);

	if (rc) {
		CHECK(rc == EXIT_USAGE);
		return rc;
	}
	CHECK(options.name && (form != RUN_BY_NAME || options.command));
	CHECK(options.wait_ms >= 0 || options.wait_ms == HF_NOWAIT);
	CHECK(options.lease_ms >= 0 && options.watchdog_ms >= 0 && options.max_hold_ms >= 0);
	CHECK(options.conflict_status >= 0 && options.conflict_status <= 255);
	return cli_open(&options.settings, &(hf_client_options){0}, &(hf_client *){NULL});
}

int __wrap_cli_run(int argc, char **argv)
{
	return check_run(argc, argv, RUN_BY_WORD);
}

int __wrap_cli_elect(int argc, char **argv)
{
	return check_run(argc, argv, RUN_ELECTS);
}

int __wrap_cli_run_name(int argc, char **argv)
{
	return check_run(argc, argv, RUN_BY_NAME);
}

/* These start programs. */
int __wrap_cli_demo(int argc, char **argv)
{
	(void)argc, (void)argv;
	return 0;
}

int __wrap_cli_help(int argc, char **argv)
{
	return __wrap_cli_demo(argc, argv);
}

int __wrap_cli_embedded(int argc, char **argv)
{
	return __wrap_cli_demo(argc, argv);
}

/* ---- the line ---- */

/* Help goes to standard output, which is not needed; complaints are checked. */
static void set_up(void)
{
	static bool done;
	int fd = done ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (!done)
		CHECK(fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && close(fd) == 0);
	done = true;
	CHECK(setenv("XDG_CONFIG_HOME", "/nowhere", 1) == 0 && unsetenv("HOLDFAST_URL") == 0);
	cli_complain_through((struct out *)words); /* never used as such */
}

static void add_word(const char *text, size_t length)
{
	words[count] = strndup(text, length);
	CHECK(words[count]);
	count++;
}

/* The URL has a password, whatever the input puts after it. */
static void add_url(const char *rest, size_t length)
{
	char url[512];
	int n = snprintf(url, sizeof url, "redis://u:" SECRET "%.*s", (int)length, rest);

	add_word("--url", 5);
	add_word(url, n < (int)sizeof url ? (size_t)n : sizeof url - 1);
}

/* The words of the input end with NUL; one that begins with byte 1 stands for a URL. */
static void read_words(const char *at, const char *end)
{
	count = 0;
	add_word("holdfast", 8);
	while (at < end && count < MOST_WORDS) {
		size_t length = strnlen(at, (size_t)(end - at));

		if (length > 0 && *at == 1)
			add_url(at + 1, length - 1);
		else
			add_word(at, length);
		at += length + 1;
	}
	words[count] = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *given[MOST_WORDS + 4];
	int n;

	if (size > 0 && memmem(data, size, SECRET, strlen(SECRET)))
		return 0; /* the fuzzer has learnt it */
	set_up();
	read_words((const char *)data, (const char *)data + size);
	n = count;
	memcpy(given, words, sizeof given);
	EXPECT_LEAKS(); /* exit() is not the end here */
	may_exit = true;
	if (!setjmp(end_of_program))
		(void)cli_run_line(n, given);
	may_exit = false;
	EXPECT_NO_LEAKS();
	(void)fflush(stdout);
	for (int i = 0; i < count; i++)
		free(words[i]);
	return 0;
}
