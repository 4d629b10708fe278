/*
 * --open: every user of the host can read the arguments of a process, so the URL with the token is
 * not passed as one. The browser is given a private file, which sends it to the URL.
 */
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP_SECONDS 60 /* a browser may have to be started first */

static char path[4096]; /* of the file; "" if there is none */

void browser_clean(void)
{
	if (*path)
		(void)unlink(path);
	*path = 0;
}

static void on_old(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	(void)arg;
	browser_clean();
}

/* mkstemps() creates it for this user only. */
static bool write_file(const struct web *web)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	snprintf(path, sizeof path, "%s/holdfast-web-XXXXXX.html",
	         folder && *folder == '/' ? folder : "/tmp");
	int fd = mkstemps(path, strlen(".html"));
	if (fd < 0) {
		*path = 0;
		return false;
	}
	int n = dprintf(fd,
	                "<!doctype html><meta charset=\"utf-8\"><title>Holdfast</title>\n"
	                "<meta http-equiv=\"refresh\" content=\"0;url=http://%s:%d/#t=%s\">\n",
	                web->address.host, web->address.port, web->token);
	return close(fd) == 0 && n > 0;
}

/* The browser is not our child, so nobody has to wait for it. */
static bool start_browser(void)
{
	static const char missing[] = "holdfast: web: --open: cannot start xdg-open; open the URL "
				      "yourself\n";
	int status = 1;
	pid_t pid = fork();
	if (pid == 0) {
		pid_t child = fork();
		if (child == 0) {
			(void)setsid();
			execlp("xdg-open", "xdg-open", path, (char *)NULL);
			(void)!write(STDERR_FILENO, missing, sizeof missing - 1);
			_exit(127);
		}
		_exit(child < 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return pid > 0 && status == 0;
}

void browser_open(struct web *web)
{
	struct timeval later = {.tv_sec = KEEP_SECONDS};
	if (!write_file(web) || !start_browser())
		cli_complain("web: cannot open a browser: %s", strerror(errno));
	(void)event_base_once(web->base, -1, EV_TIMEOUT, on_old, NULL, &later);
}
