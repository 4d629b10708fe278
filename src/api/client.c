/* The life of a client: references, calls inside it, and which process it belongs to. */
#include "api/client.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A page that the kernel wipes in a forked child; NULL on failure. */
static const _Atomic bool *new_fork_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, size, MADV_WIPEONFORK)) {
		munmap(page, size);
		return NULL;
	}
	atomic_store((_Atomic bool *)page, true);
	return page;
}

static void free_fork_page(const _Atomic bool *page)
{
	if (page)
		munmap((void *)(uintptr_t)page, (size_t)sysconf(_SC_PAGESIZE));
}

int hf__client_init(struct hf_client *client)
{
	atomic_init(&client->refs, 1);
	client->ours = new_fork_page();
	return client->ours ? 0 : HF_ESYSTEM;
}

void hf__client_done(struct hf_client *client)
{
	free_fork_page(client->ours);
	free(client->core.metrics);
	free(client->log);
}

int hf__client_check(const struct hf_client *client)
{
	if (!atomic_load_explicit(client->ours, memory_order_relaxed))
		return hf__error(
			HF_EFORKED,
			"the client was opened by the parent process; open one after the fork");
	return 0;
}

void hf__client_ref(struct hf_client *client)
{
	atomic_fetch_add(&client->refs, 1);
}

void hf__client_unref(struct hf_client *client)
{
	if (atomic_fetch_sub(&client->refs, 1) != 1)
		return;
	hf__core_done(&client->core);
	hf__table_done(&client->several);
	client->core.backend_ops->free(client->core.backend);
	hf__engine_done(&client->engine);
	hf__settings_done(&client->settings);
	hf__client_done(client);
	free(client);
}

int hf__client_lock(struct hf_client *client)
{
	int before = hf__thread_defer_cancel();
	hf__engine_lock(&client->engine);
	return before;
}

void hf__client_unlock(struct hf_client *client, int before)
{
	hf__engine_unlock(&client->engine);
	hf__thread_restore_cancel(before);
}

void hf__client_enter(struct hf_client *client)
{
	atomic_fetch_add(&client->inside, 1);
}

/* The last one to leave lets the close continue. */
void hf__client_leave(struct hf_client *client)
{
	if (atomic_fetch_sub(&client->inside, 1) == 1 && atomic_load(&client->closing))
		hf__sleep_wake_word(&client->inside);
}
