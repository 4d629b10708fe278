/*
 * Takes and releases one lock again and again, with one thread, for tools that count what that
 * costs: bench/cost-of-pair.
 *
 *   pairs URL NUMBER
 */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	if (argc != 3) {
		fprintf(stderr, "usage: pairs URL NUMBER\n");
		return 2;
	}
	int rc = hf_client_open(argv[1], NULL, &client);
	if (!rc)
		rc = hf_lock_open(client, HF_REENTRANT, "bench:pairs", &lock);
	for (long i = strtol(argv[2], NULL, 10); !rc && i > 0; i--) {
		rc = hf_lock_acquire(lock, NULL);
		if (!rc)
			rc = hf_lock_release(lock);
	}
	if (rc)
		fprintf(stderr, "%s: %s\n", hf_strerror(rc), hf_error_detail());
	hf_lock_close(lock);
	hf_client_close(client);
	return rc ? 1 : 0;
}
