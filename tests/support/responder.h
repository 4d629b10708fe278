/*
 * A server that answers by rules: each command gets the reply of the first rule that it matches.
 * Unlike a script it does not care how many times and in which order commands arrive, so it suits
 * clients that poll.
 */
#ifndef TESTS_SUPPORT_RESPONDER_H
#define TESTS_SUPPORT_RESPONDER_H

#include <stddef.h>

#define RESPONDER_MAX_RULES 256

/* In a reply this stands for the command's second word, as a bulk string. */
#define RESPONDER_WORD "\001"

/* The reply that closes the connection. */
extern const char responder_close[];

struct responder_rule {
	const char *words[8]; /* as for S_EXPECT of script.h */
	const char *reply;    /* NULL: none, neither now nor later on the connection */
	int follows;          /* if not 0: the previous command matched this rule */
};

struct responder;

/* Listens on a loopback port. The texts of the rules must stay where they are. */
struct responder *responder_start(const struct responder_rule *rules, int count);

/* Closes everything and frees it; NULL is allowed. */
void responder_stop(struct responder *responder);

int responder_port(const struct responder *responder);

/* From now on the rule has this reply, which is copied. */
void responder_set(struct responder *responder, int rule, const char *reply);

/* The next commands that the rule matches, this many, have this reply, which is copied. */
void responder_set_next(struct responder *responder, int rule, int times, const char *reply);

/* How many commands the rule has matched, and when it matched the last one. */
int responder_count(struct responder *responder, int rule);
long long responder_matched_at(struct responder *responder, int rule);

/*
 * The last command that the rule has matched, as text for people; NULL: none. Freed by the caller.
 */
char *responder_last(struct responder *responder, int rule);

/* How many connections are open, and how many were ever accepted. */
int responder_open_count(struct responder *responder);
int responder_accepted(struct responder *responder);

/* Sends the bytes on every open connection. */
void responder_send(struct responder *responder, const char *bytes);

/* Sends the bytes on every open connection on which the rule has matched a command. */
void responder_push(struct responder *responder, int rule, const char *bytes);

/* Closes every open connection; new ones are accepted. */
void responder_drop(struct responder *responder);

#endif
