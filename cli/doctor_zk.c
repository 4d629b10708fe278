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

#define WORD_MS     1000 /* for one word of four letters, of one server */
#define CONTEND_MS  300  /* an ensemble takes its time for each node */
#define ANSWER_SIZE 8192
#define HOST_SIZE   300

/* What the servers of the URL said. */
struct ensemble {
	int asked, up, leaders, alone;
	char version[64];
	bool tls;           /* words of four letters are not for such a port */
	bool conf;          /* one told its configuration */
	bool words_refused; /* one answers, but not to this */
	/* The longest tick, and the widest range of sessions. */
	int64_t tick_ms, least_ms, most_ms;
};

/* ---- words of four letters ---- */

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

/* A name that is being looked up. */
struct lookup {
	char host[HOST_SIZE];
	struct addrinfo *found; /* NULL: nothing */
};

/* "host:port" or "[host]:port" */
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

/* NULL: there is none, or not in time. A resolver that hangs keeps what it works on. */
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

/* A connected socket; -1: it cannot be reached in time. */
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

/* What a server says to a word; "" if nothing, or not in time. */
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

/* What stands behind the words at the beginning of a line, or NULL. */
static const char *line_of(const char *text, const char *words)
{
	while (text && strncmp(text, words, strlen(words)) != 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + strlen(words) : NULL;
}

static int64_t number_of(const char *text, const char *words)
{
	const char *at = line_of(text, words);
	return at ? strtoll(at, NULL, 10) : 0;
}

/* Servers may be configured differently, and any of them may become the leader. */
static void note_conf(struct ensemble *ensemble, const char *text)
{
	int64_t tick_ms = number_of(text, "tickTime=");
	int64_t least_ms = number_of(text, "minSessionTimeout=");
	int64_t most_ms = number_of(text, "maxSessionTimeout=");
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
	const char *mode = line_of(text, "Mode: ");
	const char *version = line_of(text, "Zookeeper version: ");
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

/* ---- each look ---- */

static void look_at_words(struct doctor *doctor, const struct ensemble *ensemble)
{
	if (ensemble->tls)
		say(doctor, NOTE, "words", "see the servers' own ports",
		    "not asked over TLS: what they would tell is not known");
	else if (ensemble->up > 0 && ensemble->conf)
		say(doctor, GOOD, "words", "", "srvr and conf are answered");
	else
		say(doctor, NOTE, "words", "set 4lw.commands.whitelist=srvr,conf",
		    "%s: what they would tell is not known",
		    ensemble->up > 0 ? "conf is not answered" : "srvr is not answered");
	if (ensemble->version[0])
		say(doctor, GOOD, "version", "", "ZooKeeper %s", ensemble->version);
}

static void look_at_ensemble(struct doctor *doctor, const struct ensemble *ensemble)
{
	int voters = atoi(fact(doctor, "voters"));
	bool known = strcmp(fact(doctor, "config"), "read") == 0;
	if (!known) {
		say(doctor, NOTE, "ensemble", "allow this user to read /zookeeper/config",
		    "its size is not known: %s", fact(doctor, "config"));
		return;
	}
	if (voters < 2)
		say(doctor, NOTE, "ensemble", "three servers go on when one is down",
		    "one server alone: while it is down nobody gets a lock");
	else if (voters % 2 == 0)
		say(doctor, NOTE, "ensemble", "an odd number is as safe with one less",
		    "%d servers that vote, of which %d are a majority", voters, voters / 2 + 1);
	else
		say(doctor, GOOD, "ensemble", "", "%d servers that vote, %s observers", voters,
		    fact(doctor, "observers"));
	if (ensemble->asked < voters)
		say(doctor, NOTE, "URL", "name all servers that vote",
		    "it names %d of %d servers: if those are down the others do not help",
		    ensemble->asked, voters);
}

/* Only of servers that answer words; that there is a majority the locks below prove. */
static void look_at_quorum(struct doctor *doctor, const struct ensemble *ensemble)
{
	int voters = atoi(fact(doctor, "voters"));
	int servers = voters > 1 ? voters : 1, needed = servers / 2 + 1;
	if (ensemble->up == 0)
		return;
	if (ensemble->up >= servers)
		say(doctor, GOOD, "quorum", "", "all %d serve, %d are needed", servers, needed);
	else if (ensemble->up == ensemble->asked)
		say(doctor, NOTE, "quorum", "name all servers in the URL",
		    "%d serve, the other %d were not asked; %d are needed", ensemble->up,
		    servers - ensemble->asked, needed);
	else
		say(doctor, NOTE, "quorum", "see to the others before one more fails",
		    "%d of the %d named in the URL serve, of %d in all; %d are needed",
		    ensemble->up, ensemble->asked, servers, needed);
}

/*
 * What followers report to their leader is as old as a tick allows: how long a session can be relied on is
 * computed for two ticks at least. A server alone has no followers.
 */
static void look_at_tick(struct doctor *doctor, const struct ensemble *ensemble)
{
	int64_t least_ms = 2 * ensemble->tick_ms;
	if (!ensemble->conf)
		return;
	bool enough = ensemble->alone > 0 || ensemble->least_ms >= least_ms;
	say(doctor, enough ? GOOD : NOTE, "tick",
	    enough ? "" : "set minSessionTimeout to two ticks, or leave it out",
	    "%" PRId64 " ms; sessions last %" PRId64 " to %" PRId64 " ms%s", ensemble->tick_ms,
	    ensemble->least_ms, ensemble->most_ms,
	    enough ? "" : ", and locks need one of two ticks");
}

static void look_at_session(struct doctor *doctor, const struct ensemble *ensemble)
{
	int64_t agreed = strtoll(fact(doctor, "session_ms"), NULL, 10);
	int64_t wanted = strtoll(fact(doctor, "session_wanted_ms"), NULL, 10);
	if (ensemble->conf && ensemble->alone == 0 && agreed < 2 * ensemble->tick_ms)
		say(doctor, BAD, "session", "ask for a longer one: session= in the URL",
		    "%" PRId64 " ms are less than two ticks of %" PRId64
		    " ms: a lock could have two holders",
		    agreed, ensemble->tick_ms);
	else if (agreed == wanted)
		say(doctor, GOOD, "session", "", "%" PRId64 " ms, as wished for", agreed);
	else
		say(doctor, NOTE, "session", "see minSessionTimeout and maxSessionTimeout",
		    "%" PRId64 " ms instead of %" PRId64 " ms: the servers allow no other", agreed,
		    wanted);
}

static void look_at_rights(struct doctor *doctor, hf_client *client)
{
	int rc = try_all(doctor, client, CONTEND_MS);
	if (!rc)
		say(doctor, GOOD, "rights", "", "locks were taken, waited for and released");
	else if (rc == HF_EREFUSED || rc == HF_EDENIED || rc == HF_EAUTH)
		say(doctor, BAD, "rights",
		    "give auth= in the URL, or create, delete and read to this user there", "%s",
		    doctor->why);
	else
		say(doctor, BAD, "lock", "nobody gets one before that is mended", "%s: %s",
		    hf_strerror(rc), doctor->why);
}

/* The time at which the leader makes a node of ours tells its clock. */
static int ask_with_node(struct doctor *doctor, hf_client *client)
{
	char name[64];
	hf_lock *lock = NULL;
	snprintf(name, sizeof name, "holdfast:doctor:%ld:clock", (long)getpid());
	int held = hf_lock_open(client, HF_PLAIN, name, &lock);
	if (!held)
		held = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	int rc = ask_facts(doctor, client);
	if (rc)
		rc = cli_failed(rc);
	if (!held)
		(void)hf_lock_release(lock);
	hf_lock_close(lock);
	return rc;
}

int examine_zookeeper(struct doctor *doctor, hf_client *client)
{
	struct ensemble ensemble = {0};
	int rc = ask_with_node(doctor, client);
	if (rc)
		return rc;
	ensemble.tls = strcmp(fact(doctor, "tls"), "yes") == 0;
	ask_servers(&ensemble, fact(doctor, "hosts"));
	look_at_words(doctor, &ensemble);
	look_at_ensemble(doctor, &ensemble);
	look_at_quorum(doctor, &ensemble);
	look_at_tick(doctor, &ensemble);
	look_at_session(doctor, &ensemble);
	look_at_clock(doctor, "times in logs differ; locks do not depend on them");
	look_at_rights(doctor, client);
	return doctor->sick;
}
