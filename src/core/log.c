/* Log lines, which the host passes on to the program. */
#include "core/core.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void hf__log_write(struct hf__core *core, hf_log_level level, const char *format, ...)
{
	assert(core && core->host_ops && format);
	char line[HF__DETAIL_SIZE + 512];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	core->host_ops->log(core->host, level, line);
}
