/*
 * TLS as a module: the shared library loads it for the first rediss:// URL, because loading OpenSSL
 * takes longer than everything else that a program does before its first lock.
 *
 * The static library and the tests have TLS built in.
 */
#ifndef HF_REDIS_TLS_MODULE_H
#define HF_REDIS_TLS_MODULE_H

#include "redis/tls.h"

#define HF__TLS_MODULE_FILE   "libholdfast-tls.so.0"
#define HF__TLS_MODULE_SYMBOL "holdfast_tls_module"

/* The functions of redis/tls.h. `build` comes first, so that it can be read in any module. */
struct hf__tls_module {
	const char *build; /* HF__BUILD_ID, which must be the library's */
	int (*new)(const struct hf__redis_settings *cfg, struct hf__tls **ret_tls, char *why,
	           size_t size);
	int (*share)(struct hf__tls *tls, struct hf__tls **ret_tls);
	int (*name)(struct hf__tls *tls, const char *name, char *why, size_t size);
	void (*free)(struct hf__tls *tls);
	int (*start)(struct hf__tls *tls, int fd);
	int (*handshake)(struct hf__tls *tls, bool *ret_want_write, char *why, size_t size);
	ssize_t (*recv)(struct hf__tls *tls, void *buf, size_t n);
	ssize_t (*send)(struct hf__tls *tls, const void *buf, size_t n);
	void (*reason)(struct hf__tls *tls, char *why, size_t size);
	void (*stop)(struct hf__tls *tls);
};

#endif
