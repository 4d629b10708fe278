/* The shortest program: acquires a lock, works, and releases it. */
#include <holdfast/holdfast.h>

#include <stdio.h>

int main(int argc, char **argv)
{
	hf_client *client;
	hf_lock *lock = NULL;
	int rc = hf_client_open(argc > 1 ? argv[1] : "embedded:", NULL, &client);
	if (rc) {
		fprintf(stderr, "%s: %s\n", hf_strerror(rc), hf_error_detail());
		return 1;
	}
	rc = hf_lock_open(client, HF_REENTRANT, "orders", &lock);
	if (!rc) {
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 5000));
		if (rc == HF_ETIMEDOUT) {
			puts("somebody else holds the lock");
		} else if (!rc) {
			printf("held for at least %lld ms\n",
			       (long long)hf_lock_remaining(lock, NULL));
			rc = hf_lock_release(lock);
		}
	}
	if (rc)
		fprintf(stderr, "%s: %s\n", hf_strerror(rc), hf_error_detail());
	hf_lock_close(lock);
	hf_client_close(client);
	return rc ? 1 : 0;
}
