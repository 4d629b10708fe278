/* What the server's error replies mean. */
#include "redis/refusal.h"

#include <holdfast/holdfast.h>

#include <assert.h>
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
	{"LATE", HF__FAILED, HF_EUNKNOWN}, /* our own: a later request has used its record */
};

#define REFUSALS (sizeof refusals / sizeof *refusals)
#define CODE_MAX 20 /* letters; a longer word is not an error code */

static bool begins_with(const char *text, size_t length, const char *code)
{
	size_t n = strlen(code);
	return length >= n && memcmp(text, code, n) == 0 && (length == n || text[n] == ' ');
}

static const struct refusal *find_code(const char *text, size_t length)
{
	for (size_t i = 0; i < REFUSALS; i++)
		if (begins_with(text, length, refusals[i].code))
			return &refusals[i];
	return NULL;
}

/*
 * Servers before 7.0 wrap the error of a command inside a script: "ERR Error running script (call
 * to f_…): @user_script:3: WRONGTYPE Operation …", or "@user_script: 14: -OOM …" if the script
 * itself returns it. The first word that is a known code counts.
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

/* Redis before 7.0 and Valkey have no code for a command that the ACL refuses to a script. */
static bool says_no_permission(const char *text, size_t length)
{
	return memmem(text, length, "NOPERM", 6) ||
	       memmem(text, length, "ACL failure in script", 21) ||
	       memmem(text, length, "user executing the script can't", 31);
}

static const struct refusal *find(const char *text, size_t length)
{
	const struct refusal *found = find_code(text, length);
	return found ? found : find_inside(text, length);
}

enum hf__outcome hf__refusal_read(const char *text, size_t length, int *ret_error)
{
	assert(text && ret_error);
	const struct refusal *found = find(text, length);
	if (!found && says_no_permission(text, length)) {
		*ret_error = HF_EDENIED;
		return HF__FAILED;
	}
	*ret_error = found ? found->error : HF_EREFUSED;
	return found ? found->outcome : HF__FAILED;
}

/* What a Sentinel asks for is not the password of the servers. */
static const char *advise_for_sentinel(const char *text, size_t length)
{
	if (begins_with(text, length, "NOAUTH"))
		return "NOAUTH: the Sentinel requires a password; give it as sentinel_password, in "
		       "sentinel_password_file or in HOLDFAST_SENTINEL_PASSWORD";
	if (begins_with(text, length, "WRONGPASS"))
		return "WRONGPASS: the Sentinel does not accept sentinel_user with "
		       "sentinel_password; check both";
	return NULL;
}

const char *hf__refusal_advice(const char *text, size_t length, bool by_sentinel)
{
	const char *special = by_sentinel ? advise_for_sentinel(text, length) : NULL;
	if (special)
		return special;
	static const struct {
		const char *code, *advice;
	} known[] = {
		{"NOAUTH", "NOAUTH: the server requires a password; give it in the URL, in "
	                   "password_file or in HOLDFAST_PASSWORD"},
		{"WRONGPASS",
	         "WRONGPASS: the server does not accept this user with this password; check both"},
		{"NOPERM", "NOPERM: the user may not run HELLO; its ACL needs +hello and +auth"},
		{"LOADING", "LOADING: the server is still loading its data; try again later"},
		{"NOPROTO", "NOPROTO: the server does not speak RESP3; use Redis 6.2 or later, or "
	                    "Valkey"},
		{"DENIED", "DENIED: the server is in protected mode and accepts only its own host; "
	                   "give it a password, or set protected-mode to no"},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (begins_with(text, length, known[i].code))
			return known[i].advice;
	if (memmem(text, length, "max number of clients", 21))
		return "the server has reached its maximum number of clients; raise maxclients "
		       "there";
	if (memmem(text, length, "nknown command", 14))
		return "the server does not know HELLO; use Redis 6.2 or later, or Valkey, and do "
		       "not rename the command or block it in a proxy";
	return NULL;
}

size_t hf__refusal_code(const char *text, size_t length, const char *secret)
{
	size_t n = 0;
	size_t size = secret ? strlen(secret) : 0;
	assert(text);
	while (n < length && text[n] >= 'A' && text[n] <= 'Z')
		n++;
	if (n == 0 || n > CODE_MAX || (n < length && text[n] != ' '))
		return 0;
	if (size == 0 || find_code(text, length) || begins_with(text, length, "ERR"))
		return n;
	return memmem(text, n, secret, size) || memmem(secret, size, text, n) ? 0 : n;
}

bool hf__refusal_is_demotion(const char *text, size_t length)
{
	static const char *const codes[] = {"READONLY", "MASTERDOWN", "UNBLOCKED"};
	const struct refusal *found = find(text, length);
	for (size_t i = 0; found && i < sizeof codes / sizeof *codes; i++)
		if (strcmp(found->code, codes[i]) == 0)
			return true;
	return false;
}

bool hf__refusal_is_redirection(const char *text, size_t length)
{
	return begins_with(text, length, "MOVED") || begins_with(text, length, "ASK");
}

bool hf__refusal_is_noscript(const char *text, size_t length)
{
	return length >= 8 && memcmp(text, "NOSCRIPT", 8) == 0;
}
