/* Cycles: processes that hold locks and wait for each other's, according to their notes. */
#include "cycle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_EDGES  10000
#define MOST_CYCLES 10

/* A process that waits for a lock, and one that holds it. */
struct edge {
	char *from, *to; /* the names of the two processes */
	char *lock;
	size_t length;     /* of the lock's name */
	size_t tail, head; /* the numbers of the two processes */
};

struct graph {
	struct edge edge[MOST_EDGES];
	size_t edges;
	char **party; /* all processes, in order */
	size_t parties;
	bool no_memory;
};

/* ---- reading ---- */

/* A note names the process. Without one, equal owners in Java are considered the same thread. */
static char *name_party(const char *host, int64_t pid, const char *owner)
{
	char *name = NULL;
	int n = *host ? asprintf(&name, "pid %" PRId64 " on %s", pid, host)
	              : asprintf(&name, "%s", owner);
	return n < 0 ? NULL : name;
}

static void free_edge(struct edge *edge)
{
	free(edge->from);
	free(edge->to);
	free(edge->lock);
}

static void add_edge(struct graph *graph, const hf_info *info, size_t waiter, size_t holder)
{
	size_t length;
	const char *name = hf_info_name(info, &length);
	struct edge edge = {
		.from = name_party(hf_info_waiter_host(info, waiter),
	                           hf_info_waiter_pid(info, waiter), hf_info_waiter(info, waiter)),
		.to = name_party(hf_info_host(info, holder), hf_info_pid(info, holder),
	                         hf_info_owner(info, holder)),
		.lock = malloc(length + 1),
		.length = length,
	};
	bool good = edge.from && edge.to && edge.lock;
	graph->no_memory = graph->no_memory || !good;
	/* Another thread of the holder waits: that is not a cycle. */
	if (!good || strcmp(edge.from, edge.to) == 0) {
		free_edge(&edge);
		return;
	}
	memcpy(edge.lock, name, length);
	edge.lock[length] = 0;
	graph->edge[graph->edges++] = edge;
}

static int add_lock(void *arg, const hf_info *info)
{
	struct graph *graph = arg;
	/* Any of several holders of permits can end the wait. */
	if (strcmp(hf_info_kind(info), "permits") == 0 && hf_info_holders(info) > 1)
		return 0;
	for (size_t i = 0; *hf_info_waiter(info, i); i++)
		for (size_t j = 0; *hf_info_owner(info, j) && graph->edges < MOST_EDGES; j++)
			add_edge(graph, info, i, j);
	return 0;
}

static int compare_parties(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_tails(const void *a, const void *b)
{
	const struct edge *one = a, *two = b;
	return (one->tail > two->tail) - (one->tail < two->tail);
}

static size_t find_party(const struct graph *graph, char *name)
{
	char **found = bsearch(&name, graph->party, graph->parties, sizeof name, compare_parties);
	return (size_t)(found - graph->party);
}

/* Numbers the processes, and sorts the edges by the one that waits. */
static void number_parties(struct graph *graph)
{
	size_t n = 0;
	graph->party = graph->edges ? malloc(2 * graph->edges * sizeof *graph->party) : NULL;
	if (!graph->party)
		return;
	for (size_t i = 0; i < graph->edges; i++) {
		graph->party[n++] = graph->edge[i].from;
		graph->party[n++] = graph->edge[i].to;
	}
	qsort(graph->party, n, sizeof *graph->party, compare_parties);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || strcmp(graph->party[i], graph->party[graph->parties - 1]) != 0)
			graph->party[graph->parties++] = graph->party[i];
	for (size_t i = 0; i < graph->edges; i++) {
		graph->edge[i].tail = find_party(graph, graph->edge[i].from);
		graph->edge[i].head = find_party(graph, graph->edge[i].to);
	}
	qsort(graph->edge, graph->edges, sizeof *graph->edge, compare_tails);
}

static struct graph *read_graph(hf_client *client, int *ret_rc)
{
	struct graph *graph = calloc(1, sizeof *graph);
	*ret_rc = graph ? hf_client_list(client, NULL, add_lock, graph) : HF_ENOMEM;
	if (graph)
		number_parties(graph);
	if (graph && !*ret_rc && (graph->no_memory || (graph->edges && !graph->party)))
		*ret_rc = HF_ENOMEM;
	return graph;
}

static void free_graph(struct graph *graph)
{
	for (size_t i = 0; graph && i < graph->edges; i++)
		free_edge(&graph->edge[i]);
	if (graph)
		free(graph->party);
	free(graph);
}

/* ---- searching ---- */

/* The first edge of this process, which waits; the number of edges if there is none. */
static size_t first_edge(const struct graph *graph, size_t party)
{
	size_t low = 0, high = graph->edges;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (graph->edge[middle].tail < party)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Finds the shortest way from the holder of this edge back to its waiter. by[] receives, for each
 * process that was reached, the edge by which it was; queue has room for all processes.
 */
static bool search(const struct graph *graph, const struct edge *edge, const struct edge **by,
                   size_t *queue)
{
	size_t begin = 0, end = 0;
	memset(by, 0, graph->parties * sizeof(*by));
	by[edge->head] = edge;
	queue[end++] = edge->head;
	while (begin < end && !by[edge->tail]) {
		size_t party = queue[begin++];
		for (size_t i = first_edge(graph, party);
		     i < graph->edges && graph->edge[i].tail == party; i++) {
			if (by[graph->edge[i].head])
				continue;
			by[graph->edge[i].head] = &graph->edge[i];
			queue[end++] = graph->edge[i].head;
		}
	}
	return by[edge->tail];
}

/* Describes the cycle backwards from the waiter, and marks its processes. */
static char *describe(const struct edge *edge, const struct edge **by, bool *is_known)
{
	char *text = NULL;
	size_t size, party = edge->tail;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	do {
		const struct edge *last = by[party];
		fprintf(out, "%s%s waits for '%s', which %s holds", party == edge->tail ? "" : "; ",
		        last->from, last->lock, last->to);
		is_known[party] = true;
		party = last->tail;
	} while (party != edge->tail);
	fclose(out);
	return text;
}

struct search {
	const char *name; /* only cycles with this lock, or NULL */
	size_t length;
	void (*report)(void *arg, const char *text);
	void *arg;
};

static bool is_wanted(const struct search *wanted, const struct edge *edge)
{
	return !wanted->name || (edge->length == wanted->length &&
	                         memcmp(edge->lock, wanted->name, edge->length) == 0);
}

/* Each process is part of one of the cycles that are reported. */
static int find_cycles(const struct graph *graph, const struct search *wanted)
{
	const struct edge **by = calloc(graph->parties + 1, sizeof *by);
	size_t *queue = calloc(graph->parties + 1, sizeof *queue);
	bool *is_known = calloc(graph->parties + 1, sizeof *is_known);
	bool good = by && queue && is_known;
	int found = 0;
	for (size_t i = 0; good && i < graph->edges && found < MOST_CYCLES; i++) {
		const struct edge *edge = &graph->edge[i];
		if (!is_wanted(wanted, edge) || is_known[edge->tail] ||
		    !search(graph, edge, by, queue))
			continue;
		char *text = describe(edge, by, is_known);
		if (text)
			wanted->report(wanted->arg, text);
		free(text);
		found++;
	}
	free(by);
	free(queue);
	free(is_known);
	return good ? 0 : HF_ENOMEM;
}

static int walk(hf_client *client, const struct search *wanted)
{
	int rc;
	struct graph *graph = read_graph(client, &rc);
	if (!rc)
		rc = find_cycles(graph, wanted);
	free_graph(graph);
	return rc;
}

int cycle_each(hf_client *client, void (*report)(void *arg, const char *text), void *arg)
{
	return walk(client, &(struct search){.report = report, .arg = arg});
}

static void keep_first(void *arg, const char *text)
{
	char **kept = arg;
	if (!*kept)
		*kept = strdup(text);
}

char *cycle_find(hf_client *client, const char *name, size_t length)
{
	char *text = NULL;
	(void)walk(client, &(struct search){name, length, keep_first, &text});
	return text;
}
