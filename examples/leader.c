/*
 * An election: of all processes that run this with the same URL, one leads at a time. When it
 * dies or resigns, the one that has waited longest takes over.
 *
 *   leader [ID [URL]]      default: somebody, embedded:
 */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <unistd.h>

/* Checks before each step that it still leads. */
static void lead(hf_lock *leadership, const char *id)
{
	for (int step = 1; step <= 3 && hf_lock_remaining(leadership, NULL) > 0; step++) {
		printf("%s leads, step %d\n", id, step);
		fflush(stdout);
		sleep(1);
	}
}

int main(int argc, char **argv)
{
	const char *id = argc > 1 ? argv[1] : "somebody";
	hf_client *client = NULL;
	hf_lock *leadership = NULL;
	int rc = hf_client_open(argc > 2 ? argv[2] : "embedded:", NULL, &client);
	if (!rc)
		rc = hf_lock_open(client, HF_LEADER, "example/leader", &leadership);
	if (!rc)
		rc = hf_lock_acquire(leadership, HF_ACQUIRE(.value = id)); /* waits until elected */
	if (!rc) {
		lead(leadership, id);
		rc = hf_lock_release(leadership); /* HF_ELOST: another may lead already */
	}
	if (rc)
		fprintf(stderr, "%s: %s\n", hf_strerror(rc), hf_error_detail());
	hf_lock_close(leadership);
	hf_client_close(client);
	return rc ? 1 : 0;
}
