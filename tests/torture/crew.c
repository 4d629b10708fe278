/* The processes of torture: they are started, stopped, killed and replaced. */
#include "torture/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

/* Longer than any call of a process, and than the end of its clients. */
#define FINISH_MS 60000

static void start_member(struct crew *crew, struct member *member)
{
	char number[16], place[16], threads[16], replicas[16], seed[32], mutant[16], red_mutant[16];
	member->number = ++crew->started;
	(void)snprintf(number, sizeof number, "%d", member->number);
	(void)snprintf(place, sizeof place, "%d", (int)(member - crew->member));
	(void)snprintf(threads, sizeof threads, "%d", crew->threads);
	(void)snprintf(replicas, sizeof replicas, "%d", crew->site->replicas);
	(void)snprintf(seed, sizeof seed, "%llu",
	               (unsigned long long)(crew->seed * 1000 + (uint64_t)member->number));
	(void)snprintf(mutant, sizeof mutant, "%d", crew->mutant);
	(void)snprintf(red_mutant, sizeof red_mutant, "%d", crew->red_mutant);
	int line = member->number % SITE_LINES;
	const char *urls = member->is_java ? crew->site->direct : crew->site->urls[line];
	const char *argv[] = {"/proc/self/exe",
	                      member->is_java ? "--java" : "--worker",
	                      crew->path,
	                      urls,
	                      crew->site->user,
	                      number,
	                      place,
	                      threads,
	                      replicas,
	                      seed,
	                      mutant,
	                      red_mutant,
	                      NULL};
	member->pid = process_start(argv, STDERR_FILENO);
	if (member->pid < 0)
		check_fail("cannot start a process: %s", strerror(-member->pid));
}

void crew_add(struct crew *crew, bool is_java)
{
	if (crew->count == CREW_MAX)
		check_fail("more than %d processes", CREW_MAX);
	struct member *member = &crew->member[crew->count++];
	*member = (struct member){.is_java = is_java};
	start_member(crew, member);
}

int crew_pick(const struct crew *crew, uint64_t chance)
{
	int first = (int)(chance % (uint64_t)crew->count);
	for (int i = 0; i < crew->count; i++) {
		int member = (first + i) % crew->count;
		if (!crew->member[member].is_java)
			return member;
	}
	check_fail("none of the processes uses the library");
}

static void reap(struct crew *crew, struct member *member, bool may_die)
{
	int status = 0;
	while (waitpid(member->pid, &status, 0) < 0 && errno == EINTR)
		;
	member->pid = 0;
	if (may_die || status == 0)
		return;
	crew->failures++;
	(void)fprintf(stderr, "process %d ended with %s %d\n", member->number,
	              WIFSIGNALED(status) ? "signal" : "status",
	              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void crew_replace(struct crew *crew, int member)
{
	struct member *victim = &crew->member[member];
	RECORD(crew->record, .moment = KILLED, .process = (uint16_t)victim->number);
	(void)kill(victim->pid, SIGKILL);
	reap(crew, victim, true);
	start_member(crew, victim);
}

void crew_suspend(const struct crew *crew, int member, bool on)
{
	(void)kill(crew->member[member].pid, on ? SIGSTOP : SIGCONT);
}

static bool has_ended(const struct member *member)
{
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)member->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == member->pid;
}

/*
 * What it believed has ended, so the record calls it killed; that it ended is a failure all the
 * same.
 */
void crew_watch(struct crew *crew)
{
	for (int i = 0; i < crew->count; i++) {
		struct member *member = &crew->member[i];
		if (!has_ended(member))
			continue;
		RECORD(crew->record, .moment = KILLED, .process = (uint16_t)member->number);
		crew->failures++;
		reap(crew, member, false);
		start_member(crew, member);
	}
}

void crew_finish(struct crew *crew)
{
	long long ends_at = test_now_ms() + FINISH_MS;
	for (int i = 0; i < crew->count; i++) {
		struct member *member = &crew->member[i];
		while (!has_ended(member) && test_now_ms() < ends_at)
			test_pause();
		if (!has_ended(member)) {
			(void)fprintf(stderr, "process %d does not end\n", member->number);
			(void)kill(member->pid, SIGABRT);
		}
		reap(crew, member, false);
	}
	crew->count = 0;
}
