/* What a run of torture consists of, as its command line says. */
#include "torture/plan.h"

#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "torture/faults.h"

/* ---- words ---- */

/* A name may have spaces, for which the command line has hyphens. */
static bool is_same_word(const char *name, const char *word, size_t length)
{
	size_t i = 0;
	while (i < length && name[i] && (name[i] == word[i] || (name[i] == ' ' && word[i] == '-')))
		i++;
	return i == length && !name[i];
}

/* Takes the next word off a list that is separated by commas; false: there is none. */
static bool next_word(const char **list, const char **ret_word, size_t *ret_length)
{
	if (!**list)
		return false;
	*ret_word = *list;
	*ret_length = strcspn(*list, ",");
	*list += *ret_length + ((*list)[*ret_length] == ',');
	return true;
}

/* "none" is a name as well. */
static uint64_t read_kinds(const char *list)
{
	uint64_t kinds = 0;
	const char *word;
	size_t length;
	while (next_word(&list, &word, &length)) {
		int i = 0;
		while (i < FAULTS && !is_same_word(faults[i].name, word, length))
			i++;
		if (i == FAULTS && !is_same_word("none", word, length))
			check_fail("unknown fault %s", word);
		kinds |= i < FAULTS ? UINT64_C(1) << i : 0;
	}
	return kinds;
}

/* ---- sites ---- */

/* A build without ZooKeeper has no use for its sites. */
static bool is_built(enum site_kind kind)
{
	hf_client *client = NULL;
	if (kind != ZK_ALONE && kind != ZK_ENSEMBLE)
		return true;
	int rc = hf_client_open("zk://127.0.0.1:1", HF_CLIENT(.lazy = 1), &client);
	if (rc == 0)
		(void)hf_client_close(client);
	else
		printf("torture: without %s: %s\n", site_names[kind], hf_error_detail());
	return rc == 0;
}

static int find_site(const char *word, size_t length)
{
	int i = 0;
	while (i < SITES && !is_same_word(site_names[i], word, length))
		i++;
	return i;
}

bool plan_select_sites(struct plan *plan, const char *list, char *ret_why, size_t size)
{
	const char *word;
	size_t length;
	int count = 0;
	for (int i = 0; i < SITES; i++)
		plan->site[i] = !list;
	while (list && next_word(&list, &word, &length)) {
		int site = find_site(word, length);
		if (site == SITES) {
			(void)snprintf(ret_why, size, "unknown site %.*s", (int)length, word);
			return false;
		}
		plan->site[site] = true;
	}
	for (int i = 0; i < SITES; i++) {
		plan->site[i] = plan->site[i] && is_built((enum site_kind)i);
		count += plan->site[i];
	}
	(void)snprintf(ret_why, size, "no site is selected");
	return count > 0;
}

/* ---- the command line ---- */

static void select_sites(struct plan *plan, const char *list)
{
	char why[200], known[200] = "";
	if (plan_select_sites(plan, list, why, sizeof why))
		return;
	for (int i = 0; i < SITES; i++) {
		size_t used = strlen(known);
		(void)snprintf(known + used, sizeof known - used, " %s", site_names[i]);
	}
	check_fail("--sites: %s; the sites are%s", why, known);
}

static bool read_flag(struct plan *plan, const char *name)
{
	bool is_java = strcmp(name, "--java") == 0, is_stop = strcmp(name, "--stop") == 0;
	plan->has_java |= is_java;
	plan->stops |= is_stop;
	return is_java || is_stop;
}

struct plan plan_read(int argc, char **argv)
{
	const char *sites = NULL;
	struct plan plan = {.minutes = 5, .seed = (uint64_t)time(NULL) * 1000, .kinds = UINT64_MAX};
	for (int i = 1; i < argc; i++) {
		if (read_flag(&plan, argv[i]))
			continue;
		const char *name = argv[i], *value = ++i < argc ? argv[i] : NULL;
		if (!value)
			check_fail("%s is unknown, or lacks its value", name);
		if (strcmp(name, "--minutes") == 0)
			plan.minutes = atof(value);
		else if (strcmp(name, "--seed") == 0)
			plan.seed = strtoull(value, NULL, 10);
		else if (strcmp(name, "--sites") == 0)
			sites = value;
		else if (strcmp(name, "--faults") == 0)
			plan.kinds = read_kinds(value);
		else if (strcmp(name, "--pause") == 0)
			plan.pause_ms = atoi(value);
		else if (strcmp(name, "--mutant") == 0)
			plan.mutant = atoi(value);
		else if (strcmp(name, "--red-mutant") == 0)
			plan.red_mutant = atoi(value);
		else
			check_fail("unknown option %s", name);
	}
	select_sites(&plan, sites);
	return plan;
}
