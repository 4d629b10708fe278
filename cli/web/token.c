/* Tokens: making one, reading one from a file, comparing. */
#include "web.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANDOM_BYTES 16
#define SHORTEST     16 /* characters of a token that somebody chose */

bool web_make_token(char ret_token[WEB_TOKEN_MOST])
{
	unsigned char bytes[RANDOM_BYTES];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return false;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

/* Only printable characters without blanks, since the token becomes part of a header. */
static const char *find_fault(const char *token)
{
	size_t length = strlen(token);
	for (size_t i = 0; i < length; i++)
		if (token[i] <= ' ' || token[i] > '~')
			return "its first line has characters other than printable ASCII";
	return length < SHORTEST ? "its first line has fewer than 16 characters" : NULL;
}

/* A token that other users of the host can read protects nothing. */
static const char *read_private(int fd, char ret_token[WEB_TOKEN_MOST])
{
	struct stat status;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		return "it is not a regular file";
	if (status.st_uid != geteuid() && status.st_uid != 0)
		return "it belongs to another user";
	if (status.st_mode & (S_IRWXG | S_IRWXO))
		return "other users may read or change it; use chmod 600";
	ssize_t n = read(fd, ret_token, WEB_TOKEN_MOST - 1);
	if (n < 0)
		return strerror(errno);
	ret_token[n] = 0;
	size_t length = strcspn(ret_token, "\r\n");
	if (length == WEB_TOKEN_MOST - 1)
		return "its first line is too long";
	ret_token[length] = 0;
	return find_fault(ret_token);
}

int web_read_token(const char *option, const char *path, char ret_token[WEB_TOKEN_MOST])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *fault = fd < 0 ? strerror(errno) : read_private(fd, ret_token);
	if (fault)
		cli_complain("web: %s: cannot use '%s': %s", option, path, fault);
	if (fd >= 0)
		(void)close(fd);
	return fault ? EXIT_CONFIG : 0;
}

/* Every byte of the token is compared, however the presented text differs from it. */
bool web_is_token(const char *token, const char *presented)
{
	size_t length = strlen(token), n = strlen(presented);
	unsigned difference = (unsigned)(length ^ n) | (length == 0);
	for (size_t i = 0; i < length; i++)
		difference |= (unsigned char)token[i] ^ (unsigned char)(i < n ? presented[i] : 0);
	return difference == 0;
}
