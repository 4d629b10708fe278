/* Commands that are programs of their own, because they need libraries of their own. */
#include "cli.h"
#include "top_options.h"
#include "web_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the programs are installed, as seen from the folder of the command. */
#ifndef HF_TO_LIBEXEC
#define HF_TO_LIBEXEC "../libexec/holdfast"
#endif

#define PATH_SIZE 4096

/* The folder of this command, whatever it was called by; false if that cannot be found out. */
static bool find_folder(char ret_folder[PATH_SIZE])
{
	ssize_t length = readlink("/proc/self/exe", ret_folder, PATH_SIZE - 1);
	if (length <= 0)
		return false;
	ret_folder[length] = 0;
	char *slash = strrchr(ret_folder, '/');
	if (slash)
		*slash = 0;
	return slash;
}

/* Finds the program where it is installed, or next to the command, where it is built. */
static bool find_program(const char *name, char ret_path[PATH_SIZE])
{
	static const char *const ways[] = {"/" HF_TO_LIBEXEC "/", "/"};
	char folder[PATH_SIZE];
	if (!find_folder(folder))
		return false;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		int length = snprintf(ret_path, PATH_SIZE, "%s%s%s", folder, ways[i], name);
		if (length > 0 && length < PATH_SIZE && access(ret_path, X_OK) == 0)
			return true;
	}
	return false;
}

/*
 * Every user of the host can read the arguments of a process, but only its own user the
 * environment. So the URL, which may contain a password, is moved there. It is part of an argument,
 * or an argument that follows its option.
 */
static int hide_url(char **argv, const char *url)
{
	char **to = argv;
	for (char **from = argv; *from; from++) {
		bool is_value = from[1] && from[1] == url;
		bool is_whole = (uintptr_t)url >= (uintptr_t)*from &&
		                (uintptr_t)url <= (uintptr_t)*from + strlen(*from);
		if (is_value)
			from++;
		else if (!is_whole)
			*to++ = *from;
	}
	*to = NULL;
	return setenv("HOLDFAST_URL", url, 1) || setenv(CLI_URL_IS_OPTION, "1", 1);
}

int cli_start_program(const char *name, const char *remedy, char **argv,
                      const struct cli_settings *settings)
{
	char path[PATH_SIZE];
	if (!find_program(name, path)) {
		cli_complain("%s is not installed; %s", name, remedy);
		return EXIT_UNREACHABLE;
	}
	if (settings->url && hide_url(argv, settings->url)) {
		cli_complain("out of memory");
		return EXIT_SYSTEM;
	}
	argv[0] = path;
	execv(path, argv);
	cli_complain("cannot start %s: %s", path, strerror(errno));
	return EXIT_SYSTEM;
}

int cli_top(int argc, char **argv)
{
	struct top_options options;
	int rc = top_read_options(argc, argv, &options);
	return rc ? rc
	          : cli_start_program("holdfast-top",
	                              "install the package holdfast-top, or build Holdfast with "
	                              "ncurses (libncurses-dev); 'holdfast ls' needs neither",
	                              argv, &options.settings);
}

int cli_web(int argc, char **argv)
{
	struct web_options options;
	int rc = web_read_options(argc, argv, &options);
	return rc ? rc
	          : cli_start_program("holdfast-web",
	                              "install the package holdfast-web, or build Holdfast with "
	                              "libevent (libevent-dev); 'holdfast ls' needs neither",
	                              argv, &options.settings);
}
