/* The proxy in front of a server that a test plays itself. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/net.h"
#include "support/proxy.h"
#include "support/talk.h"

/* The server has read the end, and leaves its side open. */
static void proxy_does_not_wait_for_a_server_that_keeps_a_connection(void **state)
{
	(void)state;
	int port;
	char byte;
	int listener = net_listen_tcp(&port);
	char *url = check_format("redis://127.0.0.1:%d", port);
	struct proxy *proxy = proxy_start(url);
	int client = talk_open(proxy_url(proxy));
	int server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
	(void)close(client);
	assert_int_equal(recv(server, &byte, 1, 0), 0);
	long long started_at = test_now_ms();
	proxy_strand(proxy, false);
	proxy_deliver_stranded(proxy);
	assert_in_range(test_now_ms() - started_at, 0, 9000);
	proxy_stop(proxy);
	(void)close(server);
	(void)close(listener);
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proxy_does_not_wait_for_a_server_that_keeps_a_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
