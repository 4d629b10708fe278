/* Error texts, and the detail of the last error of each thread. */
#include "api/client.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char detail[HF__DETAIL_SIZE];

const char *hf_version(void)
{
#define TEXT(x)                      #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)
	return VERSION(HF_VERSION_MAJOR, HF_VERSION_MINOR, HF_VERSION_PATCH);
#undef VERSION
#undef TEXT
}

const char *hf_strerror(int error)
{
	switch (error) {
	case 0: return "success";
#define HF__TEXT(name, number, text)                                                               \
	case name: return text;
		HF_ERRORS(HF__TEXT)
#undef HF__TEXT
	default: return "unknown error number";
	}
}

const char *hf_error_detail(void)
{
	return detail;
}

void hf__error_explain(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
}

void hf__error_clear(void)
{
	detail[0] = 0;
}
