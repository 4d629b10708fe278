/* Replaces TLS in a build without OpenSSL. */
#include "redis/tls.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

int hf__tls_new(const struct hf__redis_settings *cfg, struct hf__tls **ret_tls, char *why,
                size_t why_size)
{
	(void)cfg;
	(void)ret_tls;
	snprintf(why, why_size,
	         "rediss: this build has no TLS; build Holdfast with OpenSSL 3 (HF_TLS=ON), or use "
	         "redis:// and a local tunnel, such as stunnel");
	return HF_ENOTSUP;
}

int hf__tls_share(struct hf__tls *tls, struct hf__tls **ret_tls)
{
	(void)tls;
	(void)ret_tls;
	return HF_ENOTSUP;
}

int hf__tls_name(struct hf__tls *tls, const char *name, char *why, size_t why_size)
{
	(void)tls;
	(void)name;
	(void)why;
	(void)why_size;
	return HF_ENOTSUP;
}

/* No hf__tls is ever created, so this only gets NULL, and the functions below are never called. */
void hf__tls_free(struct hf__tls *tls)
{
	assert(!tls);
	(void)tls;
}

int hf__tls_start(struct hf__tls *tls, int fd)
{
	(void)tls;
	(void)fd;
	return HF_ENOTSUP;
}

int hf__tls_handshake(struct hf__tls *tls, bool *ret_want_write, char *why, size_t why_size)
{
	(void)tls;
	(void)ret_want_write;
	(void)why;
	(void)why_size;
	return HF_ENOTSUP;
}

ssize_t hf__tls_recv(struct hf__tls *tls, void *buf, size_t n)
{
	(void)tls;
	(void)buf;
	(void)n;
	return -ENOSYS;
}

ssize_t hf__tls_send(struct hf__tls *tls, const void *buf, size_t n)
{
	(void)tls;
	(void)buf;
	(void)n;
	return -ENOSYS;
}

void hf__tls_reason(struct hf__tls *tls, char *why, size_t why_size)
{
	(void)tls;
	(void)why;
	(void)why_size;
}

void hf__tls_stop(struct hf__tls *tls)
{
	(void)tls;
}
