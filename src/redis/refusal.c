/* What the server's error replies mean. */
#include "redis/refusal.h"

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <string.h>

static const struct refusal {
	const char *code;
	enum hf__outcome outcome;
	int error;
} refusals[] = {
	{"LOADING", HF__NOT_NOW, HF_ENOTNOW},     {"BUSY", HF__NOT_NOW, HF_ENOTNOW},
	{"MASTERDOWN", HF__NOT_NOW, HF_ENOTNOW},  {"TRYAGAIN", HF__NOT_NOW, HF_ENOTNOW},
	{"CLUSTERDOWN", HF__NOT_NOW, HF_ENOTNOW}, {"NOREPLICAS", HF__NOT_NOW, HF_ENOTNOW},
	{"UNBLOCKED", HF__NOT_NOW, HF_ENOTNOW},   {"OOM", HF__FAILED, HF_EFULL},
	{"READONLY", HF__FAILED, HF_EREADONLY},   {"MISCONF", HF__FAILED, HF_EREADONLY},
	{"NOPERM", HF__FAILED, HF_EDENIED},       {"NOAUTH", HF__FAILED, HF_EAUTH},
	{"WRONGPASS", HF__FAILED, HF_EAUTH},      {"WRONGTYPE", HF__FAILED, HF_ECONFLICT},
	{"NOPROTO", HF__FAILED, HF_EPROTOCOL},    {"MOVED", HF__FAILED, HF_EREFUSED},
	{"ASK", HF__FAILED, HF_EREFUSED},         {"CROSSSLOT", HF__FAILED, HF_EREFUSED},
	{"DENIED", HF__FAILED, HF_EREFUSED},      {"NOSCRIPT", HF__FAILED, HF_EREFUSED},
	{"LATE", HF__FAILED, HF_EUNKNOWN}, /* our own: another request has its record */
};

#define REFUSALS (sizeof refusals / sizeof *refusals)

static const struct refusal *find_code(const char *text, size_t length)
{
	for (size_t i = 0; i < REFUSALS; i++) {
		size_t n = strlen(refusals[i].code);
		if (length >= n && memcmp(text, refusals[i].code, n) == 0 &&
		    (length == n || text[n] == ' '))
			return &refusals[i];
	}
	return NULL;
}

/*
 * Servers before 7.0 wrap an error of a command inside a script: "ERR Error running script (call to
 * f_…): @user_script:3: WRONGTYPE Operation …", or "@user_script: 14: -OOM …" where the script itself
 * passes it on. The code is the first word that is one.
 */
static const struct refusal *find_inside(const char *text, size_t length)
{
	static const char wrapped[] = "ERR Error running script", passed_on[] = "@user_script";
	if ((length < sizeof wrapped - 1 || memcmp(text, wrapped, sizeof wrapped - 1) != 0) &&
	    (length < sizeof passed_on - 1 || memcmp(text, passed_on, sizeof passed_on - 1) != 0))
		return NULL;
	for (size_t i = 1; i < length; i++) {
		if (text[i - 1] != ' ' && text[i - 1] != '-')
			continue;
		const struct refusal *found = find_code(text + i, length - i);
		if (found)
			return found;
	}
	return NULL;
}

/* Before Redis 7.0, and by Valkey, a command that the ACL refuses to a script is told in words. */
static bool says_no_permission(const char *text, size_t length)
{
	return memmem(text, length, "NOPERM", 6) ||
	       memmem(text, length, "ACL failure in script", 21) ||
	       memmem(text, length, "user executing the script can't", 31);
}

enum hf__outcome hf__refusal_read(const char *text, size_t length, int *ret_error)
{
	const struct refusal *found = find_code(text, length);
	if (!found)
		found = find_inside(text, length);
	if (!found && says_no_permission(text, length)) {
		*ret_error = HF_EDENIED;
		return HF__FAILED;
	}
	*ret_error = found ? found->error : HF_EREFUSED;
	return found ? found->outcome : HF__FAILED;
}

int hf__refusal_is_noscript(const char *text, size_t length)
{
	return length >= 8 && memcmp(text, "NOSCRIPT", 8) == 0;
}
