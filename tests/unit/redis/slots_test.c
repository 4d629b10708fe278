/* Slots of keys, and what a node says about the masters of all slots. */
#include "redis/slots.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/holdfast.h>

#include "support/check.h"

static uint16_t slot_of(const char *key)
{
	return hf__slots_of(key, strlen(key));
}

/* The values are those of CLUSTER KEYSLOT on a server. */
static void keys_have_the_slots_that_servers_give_them(void **state)
{
	(void)state;
	assert_int_equal(slot_of(""), 0);
	assert_int_equal(slot_of("123456789"), 0x31c3 % HF__SLOTS);
	assert_int_equal(slot_of("foo"), 12182);
	assert_int_equal(slot_of("bar"), 5061);
	assert_int_equal(slot_of("hello"), 866);
	assert_int_equal(slot_of("foo{}{bar}"), 8363);
	assert_int_equal(slot_of("a{b"), 13340);
	assert_int_equal(hf__slots_of("a\0b", 3), hf__slots_of("{a\0b}", 5));
}

static void a_tag_decides_alone(void **state)
{
	(void)state;
	assert_int_equal(slot_of("{foo}"), slot_of("foo"));
	assert_int_equal(slot_of("x{foo}y{bar}"), slot_of("foo"));
	assert_int_equal(slot_of("redisson_lock__channel:{foo}"), slot_of("foo"));
	assert_int_equal(slot_of("foo{{bar}}zap"), slot_of("{bar"));
	/* An empty tag and one that does not end count as ordinary text. */
	assert_int_not_equal(slot_of("foo{}{bar}"), slot_of("bar"));
	assert_int_not_equal(slot_of("{foo"), slot_of("foo"));
}

/* ---- CLUSTER NODES ---- */

struct seen {
	char text[1000];
	int ranges;
	int most; /* ends the reading after this number */
};

static int note_range(void *arg, const struct hf__slots_master *master, uint16_t first,
                      uint16_t last)
{
	struct seen *seen = arg;
	size_t used = strlen(seen->text);
	snprintf(seen->text + used, sizeof(seen->text) - used, "%s:%d %d-%d;", master->host,
	         master->port, first, last);
	return ++seen->ranges < seen->most ? 0 : HF_ENOMEM;
}

static int read_nodes(const char *text, struct seen *ret_seen)
{
	*ret_seen = (struct seen){.most = 100};
	return hf__slots_read(text, strlen(text), note_range, ret_seen);
}

#define ID "07c37dfeb235213a872192d90877d0cd55635b91"

static void masters_and_their_slots_are_read(void **state)
{
	struct seen seen;
	(void)state;
	int count = read_nodes(
		ID " 127.0.0.1:7101@7151 myself,master - 0 0 1 connected 0-5460 [93-<-" ID "]\n" ID
		   " 127.0.0.1:7104@7154 slave " ID " 0 1426238317239 4 connected\n" ID
		   " 127.0.0.1:7102@7152,db2.example master - 0 1 2 connected 5461-10922 16383\n" ID
		   " ::1:7103@7153,,shard-id=" ID " master - 0 1 3 connected 10923-16382\n" ID
		   " :0@0 master,noaddr - 1 1 0 disconnected\n" ID
		   " 10.0.0.9:7109@7159 handshake - 0 0 0 connected\n",
		&seen);
	assert_int_equal(count, HF__SLOTS);
	assert_string_equal(seen.text, "127.0.0.1:7101 0-5460;db2.example:7102 5461-10922;"
	                               "db2.example:7102 16383-16383;::1:7103 10923-16382;");
}

static void an_empty_host_is_the_one_that_was_asked(void **state)
{
	struct seen seen;
	(void)state;
	assert_int_equal(read_nodes(ID " :7101@7151 myself,master - 0 0 1 connected 5\r\n", &seen),
	                 HF_EPROTOCOL);
	assert_int_equal(read_nodes(ID " :7101@7151 myself,master - 0 0 1 connected 5\n", &seen),
	                 1);
	assert_string_equal(seen.text, ":7101 5-5;");
	/* Servers before 4.0 do not show the port of the bus. */
	assert_int_equal(read_nodes(ID " h:7101 master,fail? - 0 0 1 connected 5 6", &seen), 2);
	assert_string_equal(seen.text, "h:7101 5-5;h:7101 6-6;");
}

static void what_is_not_such_a_reply_is_refused(void **state)
{
	static const char *const wrong[] = {
		"x",
		ID " h:1 master - 0 0 1",
		ID " h master - 0 0 1 connected 1",
		ID " h:0 master - 0 0 1 connected 1",
		ID " h:65536 master - 0 0 1 connected 1",
		ID " h:1 master - 0 0 1 connected 16384",
		ID " h:1 master - 0 0 1 connected 2-1",
		ID " h:1 master - 0 0 1 connected 1-",
		ID " h:1 master - 0 0 1 connected -1",
		ID " h:1 master - 0 0 1 connected 123456",
		ID " h:1 master - 0 0 1 connected one",
	};
	struct seen seen;
	char text[400];
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(read_nodes(wrong[i], &seen), HF_EPROTOCOL);
	assert_int_equal(read_nodes("", &seen), 0);
	assert_int_equal(hf__slots_read("a\0b", 3, note_range, &seen), HF_EPROTOCOL);
	snprintf(text, sizeof(text), ID " %0300d:1 master - 0 0 1 connected 1", 7);
	assert_int_equal(read_nodes(text, &seen), HF_EPROTOCOL);
}

static void the_reader_can_be_stopped(void **state)
{
	struct seen seen = {.most = 2};
	const char *text = ID " h:1 master - 0 0 1 connected 1 2 3";
	(void)state;
	assert_int_equal(hf__slots_read(text, strlen(text), note_range, &seen), HF_ENOMEM);
	assert_int_equal(seen.ranges, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_have_the_slots_that_servers_give_them),
		cmocka_unit_test(a_tag_decides_alone),
		cmocka_unit_test(masters_and_their_slots_are_read),
		cmocka_unit_test(an_empty_host_is_the_one_that_was_asked),
		cmocka_unit_test(what_is_not_such_a_reply_is_refused),
		cmocka_unit_test(the_reader_can_be_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
