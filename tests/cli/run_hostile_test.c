/* Servers that mean harm: run ends in time, in little memory, and nothing runs. */
#include "cli/cli.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "support/net.h"
#include "support/temp.h"

#define MOST_RSS   (64 * 1024)
#define HOSTILE_MS 20000 /* nothing they send may delay it longer */

struct hostile {
	int listener;
	char *dir, *url;
	pthread_t thread;
	atomic_bool over;
	const char *hello; /* reply to the first request; NULL: the text itself */
	const char *text;
	size_t repeat; /* number of times; 0: forever */
	size_t drip;   /* bytes at a time, with a pause; 0: at once */
};

#define HELLO                                                                                      \
	"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:"    \
	"3\r\n"                                                                                    \
	"$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"      \
	"$7\r\nmodules\r\n*0\r\n"

static bool send_slowly(struct hostile *hostile, int fd, const char *text)
{
	size_t length = strlen(text), step = hostile->drip ? hostile->drip : length;
	for (size_t at = 0; at < length && !atomic_load(&hostile->over); at += step) {
		size_t size = length - at < step ? length - at : step;
		if (send(fd, text + at, size, MSG_NOSIGNAL) < 0)
			return false;
		if (hostile->drip)
			(void)poll(NULL, 0, 20);
	}
	return !atomic_load(&hostile->over);
}

static void be_hostile_to(struct hostile *hostile, int fd)
{
	const struct timeval limit = {.tv_usec = 100000};
	char bytes[4096];
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (hostile->hello) {
		(void)recv(fd, bytes, sizeof bytes, 0);
		(void)send(fd, hostile->hello, strlen(hostile->hello), MSG_NOSIGNAL);
	}
	bool open = true;
	for (size_t i = 0; open && (!hostile->repeat || i < hostile->repeat); i++)
		open = send_slowly(hostile, fd, hostile->text);
	while (open && !atomic_load(&hostile->over) && recv(fd, bytes, sizeof bytes, 0) != 0)
		continue;
	(void)close(fd);
}

static void *serve(void *arg)
{
	struct hostile *hostile = arg;
	while (!atomic_load(&hostile->over)) {
		int fd = accept(hostile->listener, NULL, NULL);
		if (fd >= 0 && !atomic_load(&hostile->over))
			be_hostile_to(hostile, fd);
	}
	return NULL;
}

static void face(struct hostile *hostile)
{
	hostile->dir = temp_dir_make();
	char *path = check_format("%s/socket", hostile->dir);
	hostile->url = check_format("redis+unix://%s", path);
	hostile->listener = net_listen_unix(path);
	assert_int_equal(pthread_create(&hostile->thread, NULL, serve, hostile), 0);
	struct cli *cli = cli_start(hostile->url, "run", "-w", "1", "--watchdog", "2s", "x", "--",
	                            "echo", "ran", NULL);
	int status = cli_wait(cli, HOSTILE_MS);
	if (status != 69 && status != 77 && status != 1)
		fail_msg("status %d after '%.20s': %s", status, hostile->text, cli_errors(cli));
	assert_string_equal(cli_output(cli), "");
	if (!cli_is_slow())
		assert_in_range(cli->rss_kb, 1, MOST_RSS);
	atomic_store(&hostile->over, true);
	(void)shutdown(hostile->listener, SHUT_RDWR);
	assert_int_equal(pthread_join(hostile->thread, NULL), 0);
	(void)close(hostile->listener);
	cli_free(cli);
	temp_dir_remove(hostile->dir);
	free(path);
	free(hostile->url);
}

static void hostile_servers_are_refused_in_time_and_little_memory(void **state)
{
	char deep[4001];
	struct hostile servers[] = {
		{.text = "garbage that never ends ", .repeat = 0},
		{.text = "HTTP/1.1 400 Bad Request\r\n\r\n", .repeat = 1},
		{.text = "$100\r\nhalf", .repeat = 1},
		{.text = "$9999999999\r\n", .repeat = 1},
		{.text = "*2147483647\r\n", .repeat = 1},
		{.text = "$-5\r\n", .repeat = 1},
		{.text = deep, .repeat = 1},
		{.text = ":1\r\n", .repeat = 0},
		{.text = HELLO, .drip = 1, .repeat = 1},
		{.text = "+" HELLO, .drip = 1, .repeat = 0},
		{.hello = HELLO, .text = "garbage that never ends ", .repeat = 0},
		{.hello = HELLO,
	         .text = "$99999999\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	         .repeat = 1},
		{.hello = HELLO, .text = "*1000000000\r\n", .repeat = 1},
		{.hello = HELLO, .text = deep, .repeat = 1},
		{.hello = HELLO, .text = "+OK\r\n", .repeat = 0},
		{.hello = HELLO, .text = ">2\r\n+message\r\n+x\r\n", .repeat = 0},
		{.hello = HELLO, .text = "-ERR something\r\n", .repeat = 0},
		{.hello = HELLO, .text = "", .repeat = 1},
	};
	(void)state;
	for (size_t i = 0; i < 1000; i++)
		memcpy(deep + i * 4, "*1\r\n", 4);
	deep[4000] = 0;
	for (size_t i = 0; i < sizeof servers / sizeof *servers; i++)
		face(&servers[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_servers_are_refused_in_time_and_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
