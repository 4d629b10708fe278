/* holdfast unlock, ping and embedded. */
#include "cli.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORCE = CLI_OWN, YES };

struct admin {
	struct cli_settings settings;
	bool force, yes;
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{"force", no_argument, NULL, FORCE},
	{"yes", no_argument, NULL, YES},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int read_options(int argc, char **argv, const char *command, struct admin *admin)
{
	int letter;
	optind = 0;
	while ((letter = getopt_long(argc, argv, "+h", long_options, NULL)) != -1) {
		if (cli_take_common(&admin->settings, letter, optarg))
			continue;
		if (letter == FORCE)
			admin->force = true;
		else if (letter == YES)
			admin->yes = true;
		else if (letter == 'h') {
			cli_show_help(command);
			exit(0);
		} else {
			return EXIT_USAGE;
		}
	}
	return 0;
}

/* ---- unlock ---- */

struct target {
	hf_kind kind;
	bool found, other;
};

static int note_kind(void *arg, const hf_info *info)
{
	struct target *target = arg;
	const char *kind = hf_info_kind(info);
	target->found = hf_info_holders(info) > 0;
	target->other = strcmp(kind, "group") == 0 || strcmp(kind, "permits") == 0;
	target->kind = strcmp(kind, "read") == 0    ? HF_READ
	               : strcmp(kind, "write") == 0 ? HF_WRITE
	                                            : HF_FAIR; /* wakes fair waiters and others */
	return 0;
}

static bool is_sure(const struct admin *admin, const char *name)
{
	char answer[16];
	if (admin->yes)
		return true;
	if (!isatty(STDIN_FILENO)) {
		cli_complain("not a terminal: --yes says that you are sure");
		return false;
	}
	fputs("Take the lock ", stderr);
	cli_plain_text(stderr, name, strlen(name));
	fputs(" away from its holder, who goes on for a while without it? [y/N] ", stderr);
	return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

static int force_release(hf_client *client, const char *name, hf_kind kind)
{
	hf_lock *lock;
	int was_held = 0;
	int rc = hf_lock_open(client, kind, name, &lock);
	if (rc)
		return cli_failed(rc);
	rc = hf_lock_force_release(lock, &was_held);
	hf_lock_close(lock);
	if (rc)
		return cli_failed(rc);
	return was_held ? 0 : 1;
}

static int unlock(const struct admin *admin, hf_client *client, const char *name)
{
	struct target target = {0};
	int rc = hf_client_inspect(client, name, note_kind, &target);
	if (rc)
		return cli_failed(rc);
	if (target.other) {
		cli_complain(
			"%s: is no lock but a group or a semaphore, which cannot be unlocked as "
			"a whole",
			name);
		return EXIT_NO_LOCK;
	}
	if (!target.found) {
		cli_complain("%s: nobody holds it", name);
		return 1;
	}
	return is_sure(admin, name) ? force_release(client, name, target.kind) : 1;
}

int cli_unlock(int argc, char **argv)
{
	struct admin admin = {0};
	hf_client *client;
	int rc = read_options(argc, argv, "unlock", &admin);
	if (!rc && (argc - optind != 1 || !admin.force)) {
		cli_complain("unlock --force NAME: only by force, and one at a time; see holdfast "
		             "unlock "
		             "--help");
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = cli_open(&admin.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	rc = unlock(&admin, client, argv[optind]);
	(void)hf_client_close(client);
	return rc;
}

/* ---- ping ---- */

int cli_ping(int argc, char **argv)
{
	struct admin admin = {0};
	hf_client *client;
	int64_t us;
	int rc = read_options(argc, argv, "ping", &admin);
	if (!rc && (argc != optind || admin.force || admin.yes)) {
		cli_complain("ping takes no words; see holdfast ping --help");
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = cli_open(&admin.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	rc = hf_client_ping(client, &us);
	if (rc)
		rc = cli_failed(rc);
	else
		printf("%.3f ms\n", (double)us / 1000);
	(void)hf_client_close(client);
	return rc;
}

/* ---- the embedded server ---- */

static int embedded_status(void)
{
	char directory[4096];
	int64_t pid;
	int rc = hf_embedded_status(directory, sizeof directory, &pid);
	if (rc < 0)
		return cli_failed(rc);
	if (rc)
		printf("running, pid %" PRId64 ", in %s\n", pid, directory);
	else
		printf("not running, would be in %s\n", directory);
	return rc ? 0 : 1;
}

static int embedded_stop(void)
{
	int rc = hf_embedded_stop();
	if (rc < 0)
		return cli_failed(rc);
	puts(rc ? "stopped" : "was not running");
	return 0;
}

int cli_embedded(int argc, char **argv)
{
	struct admin admin = {0};
	int rc = read_options(argc, argv, "embedded", &admin);
	if (rc)
		return rc;
	if (argc - optind == 1 && strcmp(argv[optind], "status") == 0)
		return embedded_status();
	if (argc - optind == 1 && strcmp(argv[optind], "stop") == 0)
		return embedded_stop();
	cli_complain("embedded status or embedded stop; see holdfast embedded --help");
	return EXIT_USAGE;
}
