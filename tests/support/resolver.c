/* Stands in for the system's look-up of host names. */
#include "support/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/check.h"

#define MAX_TEXT 512

extern int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                              struct addrinfo **ret_list) __attribute__((weak));
extern void __real_freeaddrinfo(struct addrinfo *list) __attribute__((weak));
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_list);
void __wrap_freeaddrinfo(struct addrinfo *list);

/* All under the mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char answer[MAX_TEXT]; /* empty: look-ups fail */
static bool is_hanging;
static int lookups, waiting, running, most;

/* One allocation for each: the address follows the entry. */
static struct addrinfo *copy_entry(const struct addrinfo *from)
{
	struct addrinfo *entry = check_alloc(sizeof(*entry) + sizeof(struct sockaddr_storage));
	*entry = *from;
	entry->ai_addr = (struct sockaddr *)(entry + 1);
	entry->ai_canonname = NULL;
	entry->ai_next = NULL;
	memcpy(entry->ai_addr, from->ai_addr, from->ai_addrlen);
	return entry;
}

/* Appends the system's translation of a numeric address to the list. */
static int add_number(const char *host, const char *service, const struct addrinfo *hints,
                      struct addrinfo **end)
{
	struct addrinfo number = {.ai_socktype = hints ? hints->ai_socktype : 0,
	                          .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	int error = __real_getaddrinfo(host, service, &number, &list);
	if (error)
		return error;
	for (struct addrinfo *at = list; at; at = at->ai_next) {
		*end = copy_entry(at);
		end = &(*end)->ai_next;
	}
	__real_freeaddrinfo(list);
	return 0;
}

/* "[::1]:7001" */
static void add_address(char *text, const struct addrinfo *hints, struct addrinfo **end)
{
	char *colon = strrchr(text, ':');
	if (!colon)
		check_fail("not an address with a port: %s", text);
	*colon = '\0';
	if (text[0] == '[') {
		text++;
		text[strlen(text) - 1] = '\0';
	}
	if (add_number(text, colon + 1, hints, end))
		check_fail("not an address: %s", text);
}

/* Waits as long as it has to, and copies what to answer. */
static void wait_for_turn(char *ret_answer)
{
	(void)pthread_mutex_lock(&mutex);
	lookups++;
	running++;
	most = running > most ? running : most;
	waiting++;
	while (is_hanging)
		(void)pthread_cond_wait(&changed, &mutex);
	waiting--;
	memcpy(ret_answer, answer, sizeof(answer));
	(void)pthread_mutex_unlock(&mutex);
}

static void end_turn(void)
{
	(void)pthread_mutex_lock(&mutex);
	running--;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&mutex);
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_list)
{
	char text[MAX_TEXT];
	struct addrinfo **end = ret_list;
	char *rest = NULL;
	int error = 0;
	*ret_list = NULL;
	if (hints && (hints->ai_flags & AI_NUMERICHOST))
		return add_number(host, service, hints, ret_list);
	wait_for_turn(text);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		add_address(word, hints, end);
		end = &(*end)->ai_next;
	}
	if (!*ret_list)
		error = EAI_AGAIN;
	end_turn();
	return error;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	while (list) {
		struct addrinfo *next = list->ai_next;
		free(list);
		list = next;
	}
}

/* ---- the test's side ------------------------------------------------------------------------ */

void resolver_answer(const char *addresses)
{
	if (!__real_getaddrinfo || !__real_freeaddrinfo)
		check_fail("the program is not linked with --wrap=getaddrinfo,--wrap=freeaddrinfo");
	if (addresses && strlen(addresses) >= sizeof(answer))
		check_fail("too many addresses");
	(void)pthread_mutex_lock(&mutex);
	(void)snprintf(answer, sizeof(answer), "%s", addresses ? addresses : "");
	(void)pthread_mutex_unlock(&mutex);
}

void resolver_hang(bool on)
{
	(void)pthread_mutex_lock(&mutex);
	is_hanging = on;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&mutex);
}

static int read_number(const int *number)
{
	(void)pthread_mutex_lock(&mutex);
	int value = *number;
	(void)pthread_mutex_unlock(&mutex);
	return value;
}

int resolver_lookups(void)
{
	return read_number(&lookups);
}

int resolver_waiting(void)
{
	return read_number(&waiting);
}

int resolver_most(void)
{
	return read_number(&most);
}

void resolver_reset(void)
{
	(void)pthread_mutex_lock(&mutex);
	is_hanging = false;
	(void)pthread_cond_broadcast(&changed);
	while (running > 0)
		(void)pthread_cond_wait(&changed, &mutex);
	answer[0] = '\0';
	lookups = waiting = most = 0;
	(void)pthread_mutex_unlock(&mutex);
}
