/* TLS in the shared library: loads the module and forwards every call to it. */
#include "redis/tls_module.h"

#include "redis/build_id.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the rest of the library holds; `inner` is the module's own. */
struct hf__tls {
	const struct hf__tls_module *module;
	struct hf__tls *inner;
};

/* Where this library was loaded from, if that was a relative path; otherwise empty. */
static char own_path[PATH_MAX];

static const char *ask_loader(void)
{
	Dl_info info;
	return dladdr(own_path, &info) ? info.dli_fname : NULL;
}

/*
 * The loader remembers the path under which it found the library. With LD_LIBRARY_PATH=. that path
 * is relative, and wrong once the program has changed its directory, so it is resolved at once.
 */
__attribute__((constructor)) static void resolve_own_path(void)
{
	const char *path = ask_loader();
	if (path && *path != '/' && !realpath(path, own_path))
		own_path[0] = '\0';
}

/* The path of the module next to this library. Returns false if it is not known. */
static bool name_module(char *path, size_t size)
{
	const char *own = *own_path ? own_path : ask_loader();
	if (!own || *own != '/')
		return false;
	int length = (int)(strrchr(own, '/') - own);
	return snprintf(path, size, "%.*s/%s", length, own, HF__TLS_MODULE_FILE) < (int)size;
}

/*
 * If a sanitizer calls dlopen() for us, the loader searches the sanitizer's folders and not ours,
 * so the module is named by its full path. If it is missing, the loader's own search follows; if
 * that fails too, the first reason is reported.
 */
static void *open_module(char *why, size_t size)
{
	char path[PATH_MAX];
	bool is_named = name_module(path, sizeof(path));
	void *file = dlopen(is_named ? path : HF__TLS_MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!file)
		snprintf(why, size, "TLS needs %s next to libholdfast.so: %s", HF__TLS_MODULE_FILE,
		         dlerror());
	if (!file && is_named)
		file = dlopen(HF__TLS_MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
	return file;
}

/* The module stays loaded, since OpenSSL cannot be unloaded safely. */
static const struct hf__tls_module *load(char *why, size_t size)
{
	void *file = open_module(why, size);
	if (!file)
		return NULL;
	const struct hf__tls_module *module = dlsym(file, HF__TLS_MODULE_SYMBOL);
	if (module && strcmp(module->build, HF__BUILD_ID) == 0)
		return module;
	snprintf(why, size, "TLS needs the %s of the same build as libholdfast.so: %s",
	         HF__TLS_MODULE_FILE, module ? "this one is of another build" : dlerror());
	return NULL;
}

int hf__tls_new(const struct hf__redis_settings *cfg, struct hf__tls **ret_tls, char *why,
                size_t why_size)
{
	assert(cfg && ret_tls && (why || why_size == 0));
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

int hf__tls_share(struct hf__tls *tls, struct hf__tls **ret_tls)
{
	struct hf__tls *other = malloc(sizeof(*other));
	if (!other)
		return HF_ENOMEM;
	other->module = tls->module;
	int rc = tls->module->share(tls->inner, &other->inner);
	if (rc)
		free(other);
	else
		*ret_tls = other;
	return rc;
}

int hf__tls_name(struct hf__tls *tls, const char *name, char *why, size_t why_size)
{
	return tls->module->name(tls->inner, name, why, why_size);
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
