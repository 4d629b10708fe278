/* TLS in the shared library: loads the module and passes everything on to it. */
#include "redis/tls_module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* What the rest of the library holds; `inner` is the module's own. */
struct hf__tls {
	const struct hf__tls_module *module;
	struct hf__tls *inner;
};

/* It stays loaded: OpenSSL does not like to go. */
static const struct hf__tls_module *load(char *why, size_t size)
{
	void *file = dlopen(HF__TLS_MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
	const struct hf__tls_module *module = file ? dlsym(file, HF__TLS_MODULE_SYMBOL) : NULL;
	if (!module)
		snprintf(why, size, "TLS needs %s beside the library: %s", HF__TLS_MODULE_FILE,
		         dlerror());
	return module;
}

int hf__tls_new(const struct hf__config *cfg, struct hf__tls **ret_tls, char *why, size_t why_size)
{
	const struct hf__tls_module *module = load(why, why_size);
	if (!module)
		return HF_ENOTSUP;
	struct hf__tls *tls = malloc(sizeof(*tls));
	if (!tls)
		return HF_ENOMEM;
	tls->module = module;
	int rc = module->new (cfg, &tls->inner, why, why_size);
	if (rc)
		free(tls);
	else
		*ret_tls = tls;
	return rc;
}

void hf__tls_free(struct hf__tls *tls)
{
	if (!tls)
		return;
	tls->module->free(tls->inner);
	free(tls);
}

int hf__tls_start(struct hf__tls *tls, int fd)
{
	return tls->module->start(tls->inner, fd);
}

int hf__tls_handshake(struct hf__tls *tls, bool *ret_want_write, char *why, size_t why_size)
{
	return tls->module->handshake(tls->inner, ret_want_write, why, why_size);
}

ssize_t hf__tls_recv(struct hf__tls *tls, void *buf, size_t n)
{
	return tls->module->recv(tls->inner, buf, n);
}

ssize_t hf__tls_send(struct hf__tls *tls, const void *buf, size_t n)
{
	return tls->module->send(tls->inner, buf, n);
}

void hf__tls_reason(struct hf__tls *tls, char *why, size_t why_size)
{
	tls->module->reason(tls->inner, why, why_size);
}

void hf__tls_stop(struct hf__tls *tls)
{
	tls->module->stop(tls->inner);
}
