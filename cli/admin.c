/* holdfast unlock, revoke, ping and embedded. */
#include "cli.h"
#include "target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORCE = CLI_OWN, YES, WAITER };

struct admin {
	struct cli_settings settings;
	bool force, yes;
	const char *waiter; /* the waiter to remove; NULL: take the lock away from its holder */
};

const struct option cli_unlock_options[] = {
	CLI_COMMON_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{"force", no_argument, NULL, FORCE},
	{"yes", no_argument, NULL, YES},
	{"waiter", required_argument, NULL, WAITER},
	{NULL, 0, NULL, 0},
};
/* For commands without options of their own. */
static const struct option common_options[] = {
	CLI_COMMON_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};
static const struct option embedded_options[] = {
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int read_options(int argc, char **argv, const char *command, const struct option *options,
                        struct admin *admin)
{
	int letter;
	optind = 0;
	while ((letter = cli_next_option(argc, argv, command, options, &admin->settings)) != -1) {
		if (letter == '?')
			return EXIT_USAGE;
		admin->force = admin->force || letter == FORCE;
		admin->yes = admin->yes || letter == YES;
		if (letter == WAITER)
			admin->waiter = optarg;
	}
	return 0;
}

/* ---- finding out what a name is ---- */

/* Returns 0, or the exit status with an error printed. */
static int find_target(const struct cli_settings *settings, hf_client *client, const char *name,
                       struct target *ret_target)
{
	int rc = cli_check_name(client, name);
	if (rc)
		return rc;
	rc = target_find(client, cli_is_zookeeper(settings), name, ret_target);
	return rc ? cli_report_late_failure(rc, hf_error_detail()) : 0;
}

static int refuse_other(const char *name, const char *done)
{
	cli_complain("%s: a group, a semaphore or a barrier cannot be %s as a whole; to see its "
	             "holders, use: holdfast who",
	             name, done);
	return EXIT_NO_LOCK;
}

/* Nobody holds it, or it is not a lock. */
static int report_not_held(hf_client *client, const char *name)
{
	hf_lock *lock;
	int locked;
	int rc = hf_lock_open(client, HF_REENTRANT, name, &lock);
	if (rc)
		return cli_report_failure(rc);
	rc = hf_lock_is_locked(lock, &locked);
	hf_lock_close(lock);
	if (rc)
		return cli_report_failure(rc);
	cli_complain("%s: nobody holds this lock", name);
	return EXIT_NOT_ACQUIRED;
}

/* Unlocks or revokes the lock; returns 0, or the exit status with an error printed. */
static int reach_holders(hf_client *client, const char *name, hf_kind kind,
                         int (*reach)(hf_lock *lock, int *ret_was_held))
{
	int was_held = 0;
	int rc = target_reach(client, name, kind, reach, &was_held);
	if (rc)
		return cli_report_failure(rc);
	if (!was_held)
		cli_complain("%s: nobody holds this lock any more", name);
	return was_held ? 0 : EXIT_NOT_ACQUIRED;
}

/* ---- unlock ---- */

static bool is_sure(const struct admin *admin, const char *name)
{
	char answer[16];
	if (admin->yes)
		return true;
	fputs(admin->waiter ? "Remove this waiter from the wait queue of the lock "
	                    : "Take the lock ",
	      stderr);
	cli_write_plain(stderr, name, strlen(name));
	fputs(admin->waiter
	              ? "? [y/N] "
	              : " away from its holder, which may continue without it for a while? [y/N] ",
	      stderr);
	bool sure = fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
	if (!sure)
		cli_complain("%s: nothing was changed", name);
	return sure;
}

/* The kind of a lock that nobody holds is unknown, but then only fair ones have a wait queue. */
static int remove_waiter(const struct admin *admin, hf_client *client, const char *name,
                         hf_kind kind)
{
	hf_lock *lock;
	int removed = 0;
	int rc = hf_lock_open(client, kind, name, &lock);
	if (rc)
		return cli_report_failure(rc);
	if (!is_sure(admin, name)) {
		hf_lock_close(lock);
		return EXIT_NOT_ACQUIRED;
	}
	rc = hf_lock_remove_waiter(lock, admin->waiter, &removed);
	hf_lock_close(lock);
	if (rc)
		return cli_report_failure(rc);
	if (!removed)
		cli_complain("%s: no waiter is called %s; to see the waiters, use: holdfast who %s",
		             name, admin->waiter, name);
	return removed ? 0 : EXIT_NOT_ACQUIRED;
}

static int unlock(const struct admin *admin, hf_client *client, const char *name)
{
	struct target target;
	int rc = find_target(&admin->settings, client, name, &target);
	if (rc)
		return rc;
	if (target.other)
		return refuse_other(name, "unlocked");
	if (admin->waiter)
		return remove_waiter(admin, client, name, target.kind);
	if (!target.found)
		return report_not_held(client, name);
	if (!is_sure(admin, name))
		return EXIT_NOT_ACQUIRED;
	return reach_holders(client, name, target.kind, hf_lock_force_release);
}

static int check_unlock(const struct admin *admin, int words)
{
	if (words != 1 || !admin->force) {
		cli_complain("unlock: %s; see holdfast unlock --help",
		             words != 1 ? "give exactly one NAME"
		                        : "add --force to take a lock from a holder that may be "
		                          "alive");
		return EXIT_USAGE;
	}
	if (!admin->yes && !isatty(STDIN_FILENO)) {
		cli_complain("unlock: there is no terminal for the confirmation; if you are sure, "
		             "add --yes");
		return EXIT_USAGE;
	}
	return 0;
}

int cli_unlock(int argc, char **argv)
{
	struct admin admin = {0};
	hf_client *client;
	int rc = read_options(argc, argv, "unlock", cli_unlock_options, &admin);
	if (!rc)
		rc = check_unlock(&admin, argc - optind);
	/* Lazy, so that a bad name is reported before the server is needed. */
	if (!rc)
		rc = cli_open(&admin.settings,
		              &(hf_client_options){.lazy = 1, .describe = "holdfast unlock"},
		              &client);
	if (rc)
		return rc;
	rc = unlock(&admin, client, argv[optind]);
	cli_close(client);
	return rc;
}

/* ---- revoke ---- */

static int ask_holder(const struct admin *admin, hf_client *client, const char *name)
{
	struct target target;
	if (!cli_is_zookeeper(&admin->settings)) {
		cli_complain("revoke: available on ZooKeeper only; to take the lock away, use: "
		             "holdfast unlock --force %s",
		             name);
		return EXIT_USAGE;
	}
	int rc = find_target(&admin->settings, client, name, &target);
	if (rc)
		return rc;
	if (target.other)
		return refuse_other(name, "revoked");
	if (!target.found)
		return report_not_held(client, name);
	return reach_holders(client, name, target.kind, hf_lock_revoke);
}

int cli_revoke(int argc, char **argv)
{
	struct admin admin = {0};
	hf_client *client;
	int rc = read_options(argc, argv, "revoke", common_options, &admin);
	if (!rc && argc - optind != 1) {
		cli_complain("revoke: give exactly one NAME; see holdfast revoke --help");
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = cli_open(&admin.settings, &(hf_client_options){.lazy = 1}, &client);
	if (rc)
		return rc;
	rc = ask_holder(&admin, client, argv[optind]);
	cli_close(client);
	return rc;
}

/* ---- ping ---- */

int cli_ping(int argc, char **argv)
{
	struct admin admin = {0};
	hf_client *client;
	int64_t us;
	int rc = read_options(argc, argv, "ping", common_options, &admin);
	if (!rc && argc != optind) {
		cli_complain("ping: unexpected argument '%s'; see holdfast ping --help",
		             argv[optind]);
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = cli_open(&admin.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	rc = hf_client_ping(client, &us);
	if (rc)
		rc = cli_report_failure(rc);
	else
		printf("%.3f ms\n", (double)us / 1000);
	cli_close(client);
	return rc;
}

/* ---- the embedded server ---- */

static int embedded_status(void)
{
	char directory[4096];
	int64_t pid;
	int rc = hf_embedded_status(directory, sizeof directory, &pid);
	if (rc < 0)
		return cli_report_failure(rc);
	if (rc)
		printf("running, pid %" PRId64 ", in ", pid);
	else
		fputs("not running, its directory would be ", stdout);
	cli_write_plain(stdout, directory, strlen(directory));
	putchar('\n');
	return rc ? 0 : 1;
}

static int embedded_stop(void)
{
	int rc = hf_embedded_stop();
	if (rc < 0)
		return cli_report_failure(rc);
	puts(rc ? "stopped" : "was not running");
	return 0;
}

int cli_embedded(int argc, char **argv)
{
	struct admin admin = {0};
	int rc = read_options(argc, argv, "embedded", embedded_options, &admin);
	if (rc)
		return rc;
	if (argc - optind == 1 && strcmp(argv[optind], "status") == 0)
		return embedded_status();
	if (argc - optind == 1 && strcmp(argv[optind], "stop") == 0)
		return embedded_stop();
	cli_complain("embedded: use status or stop; see holdfast embedded --help");
	return EXIT_USAGE;
}
