/* The module's only export: the table of its functions. */
#include "redis/tls_module.h"

#include "redis/build_id.h"

extern const struct hf__tls_module holdfast_tls_module;

__attribute__((visibility("default"))) const struct hf__tls_module holdfast_tls_module = {
	.build = HF__BUILD_ID,
	.new = hf__tls_new,
	.share = hf__tls_share,
	.name = hf__tls_name,
	.free = hf__tls_free,
	.start = hf__tls_start,
	.handshake = hf__tls_handshake,
	.recv = hf__tls_recv,
	.send = hf__tls_send,
	.reason = hf__tls_reason,
	.stop = hf__tls_stop,
};
