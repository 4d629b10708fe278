/*
 * The limits of the machine and the server: bare loops on blocking sockets, without the library.
 *
 *   limits --pair FILE [own] URL BOARD      a connection for each thread, one command at a time
 *   limits --pair FILE pipelined URL BOARD  one connection, the commands of all owners in one write
 *   limits --pair FILE durable URL BOARD    the same, and a replica acknowledges all locks at once
 *   limits move URL BOARD                   one connection, one script moves the hold to the next
 *   limits --pair FILE --start URL NAME     takes one lock, says so, and exits after input
 *
 * The first three send the commands in the file, which are the library's own; see pair.h. Nothing
 * here may use the library, or --start would also measure how long it takes to load.
 */
#include "pair.h"
#include "peer.h"

struct bench {
	int port;
	struct pair pair;
	char released[16]; /* the server's reply to a release, recorded once */
	bool is_durable;   /* a WAIT for one replica follows the locks */
};

/*
 * One command of the pair for the i-th owner and the i-th of the locks that begin with this name.
 */
static struct bytes make_numbered(const struct bench *bench, const struct command *command,
                                  const char *name, long i)
{
	char full[PEER_MAX_NAME + 32];
	snprintf(full, sizeof(full), "%s:%ld", name, i);
	return make_bytes(&bench->pair, command, full, i);
}

static void run_command(int fd, const struct bytes *command, const char *reply)
{
	send_all(fd, command->data, command->length);
	expect_reply(fd, reply, strlen(reply));
}

/* ---- a connection for each thread ---- */

static void *run_own(void *arg)
{
	struct member *member = arg;
	const struct bench *bench = member->crew->arg;
	struct bytes acquire =
		make_numbered(bench, &bench->pair.acquire, member->crew->name, member->index);
	struct bytes release =
		make_numbered(bench, &bench->pair.release, member->crew->name, member->index);
	int fd = connect_port(bench->port);
	int64_t at = begin_member(member);
	while (!is_over(member)) {
		run_command(fd, &acquire, PAIR_GRANTED);
		run_command(fd, &release, bench->released);
		at = add_lap(&member->tally.times[0], at);
	}
	member->end_at = at;
	close(fd);
	free(acquire.data);
	free(release.data);
	return NULL;
}

static void measure_own(void *arg, const struct work *work, struct tally *ret_tally)
{
	run_crew(work, run_own, arg, ret_tally);
}

/* ---- one connection, all owners in flight ---- */

/* One command of each owner, all in one buffer. */
static struct bytes join_commands(const struct bench *bench, const struct command *command,
                                  const struct work *work)
{
	struct bytes all = {0};
	FILE *stream = open_memstream(&all.data, &all.length);
	if (!stream)
		fail("out of memory");
	for (long i = 0; i < work->count; i++) {
		struct bytes one = make_numbered(bench, command, work->name, i);
		fwrite(one.data, 1, one.length, stream);
		free(one.data);
	}
	fclose(stream);
	return all;
}

static void append(struct bytes *bytes, const char *data, size_t length)
{
	bytes->data = realloc(bytes->data, bytes->length + length);
	if (!bytes->data)
		fail("out of memory");
	memcpy(bytes->data + bytes->length, data, length);
	bytes->length += length;
}

/* The same reply, repeated for each owner. */
static struct bytes repeat_reply(const char *reply, long count)
{
	struct bytes all = {.length = strlen(reply) * (size_t)count};
	all.data = alloc_zeroed(all.length + 1, 1);
	for (long i = 0; i < count; i++)
		memcpy(all.data + strlen(reply) * (size_t)i, reply, strlen(reply));
	return all;
}

/*
 * One replica has all that was written before; in the same write, so that this takes no more steps.
 */
static void add_wait(struct bytes *commands, struct bytes *replies)
{
	char *words[] = {"WAIT", "1", "1000"};
	struct bytes wait = encode_words(3, words);
	append(commands, wait.data, wait.length);
	append(replies, ":1\r\n", 4);
	free(wait.data);
}

/* Writes the commands of all owners at once and reads all their replies into the buffer. */
static void run_batch(int fd, const struct bytes *commands, const struct bytes *replies,
                      char *buffer)
{
	send_all(fd, commands->data, commands->length);
	recv_all(fd, buffer, replies->length);
	if (memcmp(buffer, replies->data, replies->length) != 0)
		fail("an unexpected reply in a batch");
}

static void measure_pipelined(void *arg, const struct work *work, struct tally *ret_tally)
{
	const struct bench *bench = arg;
	struct bytes acquires = join_commands(bench, &bench->pair.acquire, work);
	struct bytes releases = join_commands(bench, &bench->pair.release, work);
	struct bytes granted = repeat_reply(PAIR_GRANTED, work->count);
	struct bytes released = repeat_reply(bench->released, work->count);
	if (bench->is_durable)
		add_wait(&acquires, &granted);
	char *buffer = alloc_zeroed(granted.length + released.length, 1);
	int fd = connect_port(bench->port);
	memset(ret_tally, 0, sizeof(*ret_tally));
	int64_t begin_at = now_ns(), at = begin_at, now;
	do {
		run_batch(fd, &acquires, &granted, buffer);
		run_batch(fd, &releases, &released, buffer);
		now = now_ns();
		histogram_add(&ret_tally->times[0], now - at, (uint32_t)work->count);
		at = now;
	} while ((double)(now - begin_at) < work->seconds * 1e9);
	ret_tally->seconds = (double)(now - begin_at) / 1e9;
	close(fd);
	free(buffer);
	free(released.data);
	free(granted.data);
	free(releases.data);
	free(acquires.data);
}

/* ---- one script per grant ---- */

enum { TIMES_WAIT, TIMES_GAP }; /* of tally.times */

#define MOVE_LEASE "30000"

/* KEYS: lock; ARGV: the holder, the next holder, the lease in ms. */
static const char move_script[] = "if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then return 0 end "
				  "redis.call('hset', KEYS[1], ARGV[2], 1) "
				  "redis.call('pexpire', KEYS[1], ARGV[3]) "
				  "return 1";

/* As long as a real owner, which is a UUID and a number. */
static void name_owner(char owner[64], long i)
{
	snprintf(owner, 64, "6d6f7665-0000-4000-8000-000000000000:%ld", 1000 + i);
}

/* Sends the script to the server. */
static void load_move(int fd, char ret_digest[64])
{
	char *words[] = {"SCRIPT", "LOAD", (char *)move_script}, line[64];
	struct bytes command = encode_words(3, words);
	send_all(fd, command.data, command.length);
	free(command.data);
	recv_line(fd, line, sizeof(line));
	if (line[0] != '$')
		fail("the script was refused: %s", line);
	recv_line(fd, ret_digest, 64);
}

/* The commands that move the hold from each owner to the next, and from the last to the first. */
static struct bytes *make_moves(const char *digest, const struct work *work)
{
	char from[64], to[64];
	struct bytes *moves = alloc_zeroed((size_t)work->count, sizeof(*moves));
	for (long i = 0; i < work->count; i++) {
		name_owner(from, i);
		name_owner(to, (i + 1) % work->count);
		char *words[] = {"EVALSHA", (char *)digest, "1", (char *)work->name, from,
		                 to,        MOVE_LEASE};
		moves[i] = encode_words(7, words);
	}
	return moves;
}

/* Gives the lock to the first owner, or takes it away from its holder; one key changes. */
static void place_hold(int fd, const char *name, bool is_held)
{
	char owner[64];
	name_owner(owner, 0);
	char *words[] = {is_held ? "HSET" : "DEL", (char *)name, owner, "1"};
	struct bytes command = encode_words(is_held ? 4 : 2, words);
	run_command(fd, &command, ":1\r\n");
	free(command.data);
}

/* Each owner asks again as soon as it has lost the lock, and so waits for all others. */
static void measure_move(void *arg, const struct work *work, struct tally *ret_tally)
{
	const struct bench *bench = arg;
	char digest[64];
	int fd = connect_port(bench->port);
	load_move(fd, digest);
	struct bytes *moves = make_moves(digest, work);
	int64_t *asked_at = alloc_zeroed((size_t)work->count, sizeof(*asked_at));
	memset(ret_tally, 0, sizeof(*ret_tally));
	place_hold(fd, work->name, true);
	int64_t begin_at = now_ns(), at = begin_at;
	for (long i = 0; i < work->count; i++)
		asked_at[i] = begin_at;
	for (long i = 0; (double)(at - begin_at) < work->seconds * 1e9; i = (i + 1) % work->count) {
		long next = (i + 1) % work->count;
		run_command(fd, &moves[i], ":1\r\n");
		at = add_lap(&ret_tally->times[TIMES_GAP], at);
		histogram_add(&ret_tally->times[TIMES_WAIT], at - asked_at[next], 1);
		asked_at[i] = at;
	}
	ret_tally->seconds = (double)(at - begin_at) / 1e9;
	place_hold(fd, work->name, false);
	close(fd);
	for (long i = 0; i < work->count; i++)
		free(moves[i].data);
	free(moves);
	free(asked_at);
}

static void answer_move(void *arg, const struct work *work)
{
	struct tally tally;
	const struct histogram *wait = &tally.times[TIMES_WAIT], *gap = &tally.times[TIMES_GAP];
	measure_move(arg, work, &tally);
	printf("{\"grants\": %llu, \"changes\": %llu, \"seconds\": %.6f",
	       (unsigned long long)gap->count,
	       (unsigned long long)(work->count > 1 ? gap->count : 0), tally.seconds);
	print_us("gap_p50", gap, 0.5);
	print_us("gap_p99", gap, 0.99);
	print_us("wait_p50", wait, 0.5);
	printf(", \"wait_max\": %.2f}\n", (double)wait->longest / 1000);
}

/* ---- main ---- */

static const struct job own_jobs[] = {
	{.kind = "warm", .warm_up = measure_own},
	{.kind = "own", .pairs = measure_own},
	{.why = "a bare loop only locks and unlocks free locks"},
};

static const struct job pipelined_jobs[] = {
	{.kind = "warm", .warm_up = measure_pipelined},
	{.kind = "own", .pairs = measure_pipelined},
	{.kind = "async", .pairs = measure_pipelined},
	{.why = "a pipelined loop only locks and unlocks free locks"},
};

static const struct job move_jobs[] = {
	{.kind = "warm", .warm_up = measure_move},
	{.kind = "hand", .run = answer_move},
	{.why = "the script only moves one hold between owners"},
};

static const struct variant {
	const char *option;
	const char *peer;
	const struct job *jobs;
	bool needs_pair;
} variants[] = {
	{"own", "bare loop", own_jobs, true},
	{"pipelined", "pipelined loop", pipelined_jobs, true},
	{"durable", "pipelined loop with WAIT", pipelined_jobs, true},
	{"move", "one script per grant", move_jobs, false},
};

/*
 * Locks and unlocks once: the server must know the scripts, and the reply to a release is recorded.
 */
static void try_pair(struct bench *bench)
{
	char line[8];
	int fd = connect_port(bench->port);
	struct bytes acquire = make_bytes(&bench->pair, &bench->pair.acquire, "bench:tried", 0);
	struct bytes release = make_bytes(&bench->pair, &bench->pair.release, "bench:tried", 0);
	run_command(fd, &acquire, PAIR_GRANTED);
	send_all(fd, release.data, release.length);
	recv_line(fd, line, sizeof(line));
	if (line[0] != ':')
		fail("not released: %s", line);
	snprintf(bench->released, sizeof(bench->released), "%s\r\n", line);
	close(fd);
	free(acquire.data);
	free(release.data);
}

static int run_peer(const struct variant *variant, struct bench *bench, const char *url)
{
	bench->port = url_port(url);
	bench->is_durable = strcmp(variant->option, "durable") == 0;
	if (variant->needs_pair && bench->pair.acquire.count == 0)
		fail("%s: --pair FILE is required", variant->option);
	if (variant->needs_pair)
		try_pair(bench);
	say_ready(variant->peer, "");
	return serve(variant->jobs, bench);
}

_Noreturn static void run_start(const struct bench *bench, const char *url, const char *name)
{
	struct bytes acquire = make_bytes(&bench->pair, &bench->pair.acquire, name, 0);
	run_command(connect_port(url_port(url)), &acquire, PAIR_GRANTED);
	stay_held();
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	const struct variant *variant = &variants[0];
	int i = 1, status = 2;
	if (i + 1 < argc && strcmp(argv[i], "--pair") == 0) {
		read_pair(argv[i + 1], &bench.pair);
		i += 2;
	}
	if (argc - i == 3 && bench.pair.acquire.count > 0 && strcmp(argv[i], "--start") == 0)
		run_start(&bench, argv[i + 1], argv[i + 2]);
	for (size_t v = 0; argc - i == 3 && v < sizeof(variants) / sizeof(*variants); v++) {
		if (strcmp(argv[i], variants[v].option) == 0) {
			variant = &variants[v];
			i++;
		}
	}
	if (argc - i == 2)
		status = run_peer(variant, &bench, argv[i]);
	else
		fprintf(stderr,
		        "usage: %s [--pair FILE] [own|pipelined|durable|move] URL BOARD\n"
		        "       %s --pair FILE --start URL NAME\n",
		        argv[0], argv[0]);
	pair_free(&bench.pair);
	return status;
}
