/* holdfast doctor on ZooKeeper: the ensemble, its majority, sessions, rights. */
#include "aside.h"
#include "doctor.h"

#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORD_MS     1000 /* for one four-letter word to one server */
#define CONTEND_MS  300  /* an ensemble needs time for each node */
#define ANSWER_SIZE 8192
#define HOST_SIZE   300

/* What the servers in the URL said. */
struct ensemble {
	int asked, up, leaders, alone;
	char version[64];
	bool tls;           /* a TLS port does not answer four-letter words */
	bool conf;          /* one server returned its configuration */
	bool words_refused; /* one server answers, but refuses the word */
	/* The longest tick, and the widest range of session timeouts. */
	int64_t tick_ms, least_ms, most_ms;
};

/* ---- four-letter words ---- */

static int64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_ready(int fd, short events, int64_t until)
{
	struct pollfd polled = {.fd = fd, .events = events};
	int64_t left = until - clock_ms();
	return left > 0 && poll(&polled, 1, (int)left) == 1;
}

/* A host name that is being resolved. */
struct lookup {
	char host[HOST_SIZE];
	struct addrinfo *found; /* NULL: none */
};

/* Resolves "host:port" or "[host]:port". */
static void look_up(void *arg)
{
	struct lookup *lookup = arg;
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
	char *port = strrchr(lookup->host, ':'), *name = lookup->host;
	if (!port)
		return;
	*port++ = 0;
	if (*name == '[') {
		name++;
		name[strcspn(name, "]")] = 0;
	}
	if (getaddrinfo(name, port, &wanted, &lookup->found))
		lookup->found = NULL;
}

/*
 * NULL: there is no address, or it was not found in time. A resolver that hangs keeps its lookup.
 */
static struct addrinfo *find_address(const char *address, int64_t until)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	if (!lookup)
		return NULL;
	snprintf(lookup->host, sizeof lookup->host, "%s", address);
	if (!aside_call(look_up, lookup, until - clock_ms()))
		return NULL;
	struct addrinfo *found = lookup->found;
	free(lookup);
	return found;
}

/* Returns a connected socket; -1: it cannot be reached in time. */
static int connect_to(const char *address, int64_t until)
{
	struct addrinfo *found = find_address(address, until);
	if (!found)
		return -1;
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = 0;
	socklen_t size = sizeof error;
	if (fd >= 0) {
		(void)connect(fd, found->ai_addr, found->ai_addrlen);
		bool good = is_ready(fd, POLLOUT, until) &&
		            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && !error;
		if (!good) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	return fd;
}

/* Asks a server a four-letter word; the answer is "" if there is none in time. */
static void ask_word(const char *address, const char *word, char ret_text[ANSWER_SIZE])
{
	int64_t until = clock_ms() + WORD_MS;
	size_t length = 0;
	int fd = connect_to(address, until);
	ret_text[0] = 0;
	if (fd < 0)
		return;
	if (send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word)) {
		ssize_t n = 1;
		while (n > 0 && length < ANSWER_SIZE - 1 && is_ready(fd, POLLIN, until)) {
			n = recv(fd, ret_text + length, ANSWER_SIZE - 1 - length, 0);
			length += n > 0 ? (size_t)n : 0;
		}
	}
	ret_text[length] = 0;
	close(fd);
}

/* Returns what follows these words at the beginning of a line, or NULL. */
static const char *find_line(const char *text, const char *words)
{
	while (text && strncmp(text, words, strlen(words)) != 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + strlen(words) : NULL;
}

static int64_t find_number(const char *text, const char *words)
{
	const char *at = find_line(text, words);
	return at ? strtoll(at, NULL, 10) : 0;
}

/* Servers may be configured differently, and any of them may become the leader. */
static void note_conf(struct ensemble *ensemble, const char *text)
{
	int64_t tick_ms = find_number(text, "tickTime=");
	int64_t least_ms = find_number(text, "minSessionTimeout=");
	int64_t most_ms = find_number(text, "maxSessionTimeout=");
	if (tick_ms <= 0)
		return;
	if (tick_ms > ensemble->tick_ms)
		ensemble->tick_ms = tick_ms;
	if (!ensemble->conf || least_ms < ensemble->least_ms)
		ensemble->least_ms = least_ms;
	if (most_ms > ensemble->most_ms)
		ensemble->most_ms = most_ms;
	ensemble->conf = true;
}

static void ask_server(struct ensemble *ensemble, const char *address)
{
	char text[ANSWER_SIZE];
	ensemble->asked++;
	if (ensemble->tls)
		return;
	ask_word(address, "srvr", text);
	const char *mode = find_line(text, "Mode: ");
	const char *version = find_line(text, "Zookeeper version: ");
	if (strstr(text, "whitelist"))
		ensemble->words_refused = true;
	if (!mode)
		return;
	ensemble->up++;
	ensemble->leaders += strncmp(mode, "leader", 6) == 0;
	ensemble->alone += strncmp(mode, "standalone", 10) == 0;
	if (version && !ensemble->version[0])
		snprintf(ensemble->version, sizeof ensemble->version, "%.*s",
		         (int)strcspn(version, "-, \n"), version);
	ask_word(address, "conf", text);
	note_conf(ensemble, text);
}

static void ask_servers(struct ensemble *ensemble, const char *hosts)
{
	char address[HOST_SIZE];
	while (*hosts) {
		size_t length = strcspn(hosts, ",");
		snprintf(address, sizeof address, "%.*s", (int)length, hosts);
		ask_server(ensemble, address);
		hosts += length + (hosts[length] == ',');
	}
}

/* ---- the checks ---- */

static void check_words(struct doctor *doctor, const struct ensemble *ensemble)
{
	if (ensemble->tls)
		doctor_say(doctor, NOTE, "words", "use a URL with the servers' plain ports",
		           "the servers' state and configuration cannot be read over TLS");
	else if (ensemble->up > 0 && ensemble->conf)
		doctor_say(doctor, GOOD, "words", "", "the servers answer srvr and conf");
	else
		doctor_say(doctor, NOTE, "words", "set 4lw.commands.whitelist=srvr,conf",
		           "the servers do not answer %s, so parts of their state are unknown",
		           ensemble->up > 0 ? "conf" : "srvr");
	if (ensemble->version[0])
		doctor_say(doctor, GOOD, "version", "", "ZooKeeper %s", ensemble->version);
}

static void check_ensemble(struct doctor *doctor, const struct ensemble *ensemble)
{
	int voters = atoi(doctor_fact(doctor, "voters"));
	bool known = strcmp(doctor_fact(doctor, "config"), "read") == 0;
	if (!known) {
		doctor_say(doctor, NOTE, "ensemble", "allow this user to read /zookeeper/config",
		           "its size is unknown: %s", doctor_fact(doctor, "config"));
		return;
	}
	if (voters < 2)
		doctor_say(doctor, NOTE, "ensemble", "use three servers, of which one may fail",
		           "a single server: while it is down, nobody gets a lock");
	else if (voters % 2 == 0)
		doctor_say(doctor, NOTE, "ensemble", "one server fewer would be just as safe",
		           "%d voting servers, of which %d are a majority", voters, voters / 2 + 1);
	else
		doctor_say(doctor, GOOD, "ensemble", "", "%d voting servers, %s observers", voters,
		           doctor_fact(doctor, "observers"));
	if (ensemble->asked < voters)
		doctor_say(doctor, NOTE, "URL", "name all voting servers",
		           "it names %d of %d servers: if these are down, the others do not help",
		           ensemble->asked, voters);
}

/* For servers that answer four-letter words; the locks below prove that there is a majority. */
static void check_quorum(struct doctor *doctor, const struct ensemble *ensemble)
{
	int voters = atoi(doctor_fact(doctor, "voters"));
	int servers = voters > 1 ? voters : 1, needed = servers / 2 + 1;
	if (ensemble->up == 0)
		return;
	if (ensemble->up >= servers)
		doctor_say(doctor, GOOD, "quorum", "", "all %d are up, %d are needed", servers,
		           needed);
	else if (ensemble->up == ensemble->asked)
		doctor_say(doctor, NOTE, "quorum", "name all servers in the URL",
		           "%d are up, the other %d were not asked; %d are needed", ensemble->up,
		           servers - ensemble->asked, needed);
	else
		doctor_say(doctor, NOTE, "quorum", "start the others before one more fails",
		           "%d of the %d named in the URL are up, of %d in all; %d are needed",
		           ensemble->up, ensemble->asked, servers, needed);
}

/*
 * A leader learns from its followers once per tick which sessions are alive, so a session can only
 * be relied on if it lasts at least two ticks. A single server has no followers.
 */
static void check_tick(struct doctor *doctor, const struct ensemble *ensemble)
{
	int64_t least_ms = 2 * ensemble->tick_ms;
	if (!ensemble->conf)
		return;
	bool enough = ensemble->alone > 0 || ensemble->least_ms >= least_ms;
	doctor_say(doctor, enough ? GOOD : NOTE, "tick",
	           enough ? "" : "set minSessionTimeout to two ticks, or remove it",
	           "%" PRId64 " ms; sessions last %" PRId64 " to %" PRId64 " ms%s",
	           ensemble->tick_ms, ensemble->least_ms, ensemble->most_ms,
	           enough ? "" : ", but locks need at least two ticks");
}

static void check_session(struct doctor *doctor, const struct ensemble *ensemble)
{
	int64_t agreed = strtoll(doctor_fact(doctor, "session_ms"), NULL, 10);
	int64_t wanted = strtoll(doctor_fact(doctor, "session_wanted_ms"), NULL, 10);
	if (ensemble->conf && ensemble->alone == 0 && agreed < 2 * ensemble->tick_ms)
		doctor_say(doctor, BAD, "session", "use a longer session: session= in the URL",
		           "%" PRId64 " ms is less than two ticks of %" PRId64
		           " ms: a lock could have two holders",
		           agreed, ensemble->tick_ms);
	else if (agreed == wanted)
		doctor_say(doctor, GOOD, "session", "", "%" PRId64 " ms, as requested", agreed);
	else
		doctor_say(doctor, NOTE, "session", "check minSessionTimeout and maxSessionTimeout",
		           "%" PRId64 " ms instead of %" PRId64 " ms: the servers do not allow it",
		           agreed, wanted);
}

static void check_rights(struct doctor *doctor, hf_client *client)
{
	int rc = doctor_try_locks(doctor, client, CONTEND_MS);
	if (!rc)
		doctor_say(doctor, GOOD, "rights", "", "locks were taken, waited for and released");
	else if (rc == HF_EREFUSED || rc == HF_EDENIED || rc == HF_EAUTH)
		doctor_say(doctor, BAD, "rights",
		           "add auth= to the URL, or grant this user create, delete and read there",
		           "%s", doctor->why);
	else
		doctor_say(doctor, BAD, "lock", "nobody gets a lock until this is fixed", "%s: %s",
		           hf_strerror(rc), doctor->why);
}

/* The creation time of a node of ours shows the clock of the leader. */
static int ask_with_node(struct doctor *doctor, hf_client *client)
{
	char name[64];
	hf_lock *lock = NULL;
	snprintf(name, sizeof name, "holdfast:doctor:%ld:clock", (long)getpid());
	int held = hf_lock_open(client, HF_PLAIN, name, &lock);
	if (!held)
		held = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	int rc = doctor_read_facts(doctor, client);
	if (rc)
		rc = doctor_fail(doctor, rc);
	if (!held)
		(void)hf_lock_release(lock);
	hf_lock_close(lock);
	return rc;
}

int doctor_examine_zookeeper(struct doctor *doctor, hf_client *client)
{
	struct ensemble ensemble = {0};
	int rc = ask_with_node(doctor, client);
	if (rc)
		return rc;
	ensemble.tls = strcmp(doctor_fact(doctor, "tls"), "yes") == 0;
	ask_servers(&ensemble, doctor_fact(doctor, "hosts"));
	check_words(doctor, &ensemble);
	check_ensemble(doctor, &ensemble);
	check_quorum(doctor, &ensemble);
	check_tick(doctor, &ensemble);
	check_session(doctor, &ensemble);
	doctor_check_clock(doctor, "times in logs differ, but locks do not depend on clocks");
	check_rights(doctor, client);
	doctor_check_cycles(doctor, client);
	return doctor->sick;
}
