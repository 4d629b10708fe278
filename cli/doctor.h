/* What the checks of doctor share. */
#ifndef HF_CLI_DOCTOR_H
#define HF_CLI_DOCTOR_H

#include "cli.h"

#define DOCTOR_FACTS 48

enum doctor_verdict { GOOD, NOTE, BAD, VERDICTS };

/* Its texts may come from the server, so they must be made safe to show. */
struct doctor_finding {
	enum doctor_verdict verdict;
	const char *subject, *found;
	const char *remedy; /* "" if there is nothing to do */
};

struct doctor {
	struct cli_settings settings;
	/* Takes each finding; NULL: they are printed. */
	void (*note)(void *arg, const struct doctor_finding *finding);
	void *note_arg;
	struct {
		char name[40];
		char value[512];
	} fact[DOCTOR_FACTS];
	size_t facts;
	int64_t local_us;  /* this host's clock when the facts were read */
	char warning[400]; /* what the library logged while locks were tried; empty: nothing */
	char why[400];     /* the first failure of a lock */
	bool replica;
	bool sick;
	const char *node; /* the master of a cluster that they are about, or NULL */
	int findings;     /* that are not good */
};

/* ---- doctor.c ---- */
/*
 * Checks everything. The client must have been opened with doctor_note_warning() as .on_log and the
 * doctor as .log_arg. Returns the exit status.
 */
int doctor_examine(struct doctor *doctor, hf_client *client);
void doctor_note_warning(void *arg, hf_log_level level, const char *line);
/* Reports that a right is missing, with the line that grants it. */
void doctor_report_denied(struct doctor *doctor, const char *detail);
/* Reports that the last library call failed; returns the exit status for that error. */
int doctor_fail(struct doctor *doctor, int error);
/* Reports one finding, as a line: the verdict, the subject, what was found, and the remedy. */
__attribute__((format(printf, 5, 6))) void doctor_say(struct doctor *doctor,
                                                      enum doctor_verdict verdict,
                                                      const char *subject, const char *remedy,
                                                      const char *format, ...);
/* Reads the facts of the server, or of doctor->node; returns 0 or a library error. */
int doctor_read_facts(struct doctor *doctor, hf_client *client);
/* Returns what the server said about this; "" if nothing. */
const char *doctor_fact(const struct doctor *doctor, const char *name);
bool doctor_fact_is(const struct doctor *doctor, const char *name, const char *value);
/* Whether the server is at least this version of Redis, or any Valkey. */
bool doctor_is_at_least(const struct doctor *doctor, int major, int minor);
void doctor_check_clock(struct doctor *doctor, const char *consequence);
/*
 * Takes locks of every layout while another client waits for each of them, this long and in vain.
 * Returns 0, or an error with doctor->why.
 */
int doctor_try_locks(struct doctor *doctor, hf_client *client, int64_t wait_ms);
/* Looks for holders that wait for each other. */
void doctor_check_cycles(struct doctor *doctor, hf_client *client);

/* ---- doctor_failover.c ---- */
/* The masters of a cluster, and how they announce releases; nothing about another server. */
void doctor_check_cluster(struct doctor *doctor);
/* What a failover can lose, and which settings prevent that; of doctor->node if there is one. */
void doctor_check_failover(struct doctor *doctor);

/* ---- doctor_zk.c ---- */
/* Returns the exit status. */
int doctor_examine_zookeeper(struct doctor *doctor, hf_client *client);

#endif
