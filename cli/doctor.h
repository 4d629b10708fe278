/* What the looks of doctor share. */
#ifndef HF_CLI_DOCTOR_H
#define HF_CLI_DOCTOR_H

#include "cli.h"

#define DOCTOR_FACTS 32

struct doctor {
	struct cli_settings settings;
	struct {
		char name[40];
		char value[512];
	} fact[DOCTOR_FACTS];
	size_t facts;
	int64_t local_us;  /* when they were asked */
	char warning[400]; /* what the library logged while locks were tried; empty: nothing */
	char why[400];     /* the first failure of a lock */
	bool replica;
	bool sick;
};

enum verdict { GOOD, NOTE, BAD };

/* ---- doctor.c ---- */
/* One line each: the verdict, what was looked at, what was found, what to do. */
__attribute__((format(printf, 5, 6))) void doctor_say(struct doctor *doctor, enum verdict verdict,
                                                      const char *subject, const char *remedy,
                                                      const char *format, ...);
/* Asks the server for its facts; 0 or an error of the library. */
int doctor_read_facts(struct doctor *doctor, hf_client *client);
/* What it said; "" if nothing. */
const char *doctor_fact(const struct doctor *doctor, const char *name);
void doctor_check_clock(struct doctor *doctor, const char *who_compares);
/*
 * Takes a lock of each layout, for which another waits so long in vain; 0, or an error with
 * doctor->why.
 */
int doctor_try_locks(struct doctor *doctor, hf_client *client, int64_t wait_ms);

/* ---- doctor_zk.c ---- */
/* The exit status. */
int doctor_examine_zookeeper(struct doctor *doctor, hf_client *client);

#endif
