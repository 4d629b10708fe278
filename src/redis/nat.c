/* Address translation: where a node is reached whose own address means nothing here. */
#include "redis/nat.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A part of a rule; it does not end with NUL. */
struct part {
	const char *text;
	size_t length;
};

struct rule {
	struct part from, to;
	int from_port, to_port; /* 0: every port, which stays the same */
};

/* A host, or a port of digits; false at a part that is empty or has an extra bracket. */
static bool read_part(const char **at, const char *end, struct part *ret_part)
{
	const char *begin = *at;
	if (begin < end && *begin == '[') {
		const char *close = memchr(begin, ']', (size_t)(end - begin));
		if (!close || (close + 1 < end && close[1] != ':'))
			return false;
		*ret_part = (struct part){begin + 1, (size_t)(close - begin - 1)};
		*at = close + 1;
	} else {
		const char *colon = memchr(begin, ':', (size_t)(end - begin));
		*ret_part = (struct part){begin, (size_t)((colon ? colon : end) - begin)};
		*at = colon ? colon : end;
	}
	if (*at < end)
		++*at; /* the colon */
	return ret_part->length > 0;
}

/* The port that the part is; 0 if it is not a port. */
static int port_of(const struct part *part)
{
	if (part->length > 5 || strspn(part->text, "0123456789") < part->length)
		return 0;
	long port = strtol(part->text, NULL, 10);
	return port <= 65535 ? (int)port : 0;
}

/* Two parts are two hosts, four are hosts with their ports. */
static bool read_rule(const char *at, const char *end, struct rule *ret_rule)
{
	struct part part[4] = {{NULL, 0}};
	int n = 0;
	while (at < end && n < 4)
		if (!read_part(&at, end, &part[n++]))
			return false;
	*ret_rule = (struct rule){.from = part[0], .to = part[n == 4 ? 2 : 1]};
	if (n == 4) {
		ret_rule->from_port = port_of(&part[1]);
		ret_rule->to_port = port_of(&part[3]);
	}
	return at == end && (n == 2 || (n == 4 && ret_rule->from_port && ret_rule->to_port));
}

/* The next rule of the list, or false. */
static bool next_rule(const char **rules, struct rule *ret_rule)
{
	const char *begin = *rules;
	const char *end = begin + strcspn(begin, ",");
	*rules = *end ? end + 1 : end;
	return read_rule(begin, end, ret_rule);
}

bool hf__nat_is_valid(const char *rules)
{
	assert(rules);
	struct rule rule;
	size_t length = strlen(rules);
	if (length == 0 || rules[length - 1] == ',')
		return false;
	while (*rules)
		if (!next_rule(&rules, &rule))
			return false;
	return true;
}

static bool fits(const struct rule *rule, const char *host, int port)
{
	return strlen(host) == rule->from.length &&
	       memcmp(host, rule->from.text, rule->from.length) == 0 &&
	       (!rule->from_port || rule->from_port == port);
}

void hf__nat_apply(const char *rules, char *host, size_t size, int *port)
{
	assert(host && size > 0 && port);
	while (rules && *rules) {
		struct rule rule;
		if (!next_rule(&rules, &rule) || !fits(&rule, host, *port) ||
		    rule.to.length >= size)
			continue;
		memcpy(host, rule.to.text, rule.to.length);
		host[rule.to.length] = '\0';
		if (rule.to_port)
			*port = rule.to_port;
		return;
	}
}
