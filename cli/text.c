/* Texts: durations in and out, JSON, names that may hold anything, complaints. */
#include "cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define TEN_YEARS_MS INT64_C(315576000000)

void cli_complain(const char *format, ...)
{
	va_list args;
	fputs("holdfast: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- durations ---- */

static int64_t unit_ms(const char *unit)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = {{"", 1000},   {"s", 1000},    {"ms", 1},
	             {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(unit, units[i].name) == 0)
			return units[i].ms;
	return 0;
}

/* Whole and fraction are read apart, so that 0.1 is exactly 100 ms. */
static bool read_decimal(const char **at, int64_t *ret_whole, int64_t *ret_millionths)
{
	int64_t scale = 100000;
	bool digits = false;
	*ret_whole = *ret_millionths = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++, digits = true)
		if (*ret_whole < TEN_YEARS_MS)
			*ret_whole = *ret_whole * 10 + (**at - '0');
	if (**at != '.')
		return digits;
	(*at)++;
	for (; **at >= '0' && **at <= '9'; (*at)++, digits = true, scale /= 10)
		*ret_millionths += (**at - '0') * scale;
	return digits;
}

int64_t cli_duration(const char *option, const char *text)
{
	const char *at = text;
	int64_t whole, millionths;
	bool good = read_decimal(&at, &whole, &millionths);
	int64_t unit = good ? unit_ms(at) : 0;
	if (!unit) {
		cli_complain("%s: '%s' is no time: give seconds, or a number with ms, s, m, h or d",
		             option, text);
		return -1;
	}
	if (whole > TEN_YEARS_MS / unit) {
		cli_complain("%s: '%s' is more than ten years", option, text);
		return -1;
	}
	int64_t ms = whole * unit + (millionths * unit + 999999) / 1000000;
	if (ms > TEN_YEARS_MS) {
		cli_complain("%s: '%s' is more than ten years", option, text);
		return -1;
	}
	return ms;
}

const char *cli_span(int64_t ms, char ret_text[32])
{
	if (ms < 1000)
		snprintf(ret_text, 32, "%" PRId64 " ms", ms);
	else if (ms < 60000)
		snprintf(ret_text, 32, "%.1f s", (double)ms / 1000);
	else if (ms < 3600000)
		snprintf(ret_text, 32, "%" PRId64 " min", ms / 60000);
	else
		snprintf(ret_text, 32, "%.1f h", (double)ms / 3600000);
	return ret_text;
}

/* ---- texts of others ---- */

/* The bytes of the UTF-8 character that starts here, or 0 if there is none. */
static size_t character(const unsigned char *s, size_t left)
{
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (length == 0 || length > left || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
	bool surrogate = s[0] == 0xed && s[1] > 0x9f;
	return overlong || surrogate || (s[0] == 0xf4 && s[1] > 0x8f) ? 0 : length;
}

/* C0, DEL, C1, and the marks that turn the direction of writing. */
static bool is_unsafe(const unsigned char *s, size_t length)
{
	if (length == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	if (length == 2)
		return s[0] == 0xc2 && s[1] < 0xa0;
	bool marks = length == 3 && s[0] == 0xe2 && s[1] == 0x80 && s[2] >= 0x8b && s[2] <= 0xaf;
	bool isolates = length == 3 && s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa0;
	return marks || isolates;
}

void cli_plain_text(FILE *out, const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text;
	while (length > 0) {
		size_t n = character(at, length);
		if (n == 0 || is_unsafe(at, n)) {
			n = n ? n : 1;
			for (size_t i = 0; i < n; i++)
				fprintf(out, "\\x%02x", at[i]);
		} else if (*at == '\\') {
			fputs("\\\\", out);
		} else {
			fwrite(at, 1, n, out);
		}
		at += n;
		length -= n;
	}
}

void cli_json_text(FILE *out, const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text;
	fputc('"', out);
	while (length > 0) {
		size_t n = character(at, length);
		if (n == 0)
			fputs("\xef\xbf\xbd", out); /* a byte that is no text */
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f)
			fprintf(out, "\\u%04x", *at);
		else
			fwrite(at, 1, n, out);
		n = n ? n : 1;
		at += n;
		length -= n;
	}
	fputc('"', out);
}

/* ---- failures ---- */

int cli_status_of(int error)
{
	switch (error) {
	case HF_EBUSY:
	case HF_ETIMEDOUT: return EXIT_NOT_ACQUIRED;
	case HF_ECONFLICT: return EXIT_NO_LOCK;
	case HF_EUNREACHABLE:
	case HF_EPROTOCOL:
	case HF_ETLS:
	case HF_EUNKNOWN: return EXIT_UNREACHABLE;
	case HF_EREFUSED:
	case HF_EAUTH:
	case HF_EDENIED:
	case HF_EREADONLY:
	case HF_ENOTNOW:
	case HF_EFULL: return EXIT_REFUSED;
	case HF_EINVAL: return EXIT_USAGE;
	default: return EXIT_SYSTEM;
	}
}

static const char *advice(int error)
{
	switch (error) {
	case HF_ECONFLICT: return "; the key was not touched: choose another name";
	case HF_EUNREACHABLE: return "; is the server running, and the URL right?";
	case HF_EAUTH: return "; see --password-file";
	case HF_EDENIED: return "; 'holdfast doctor' prints the ACL line that is needed";
	case HF_EREADONLY: return "; connect to the primary";
	default: return "";
	}
}

int cli_failed_with(int error, const char *detail)
{
	cli_complain("%s%s%s%s", hf_strerror(error), *detail ? ": " : "", detail, advice(error));
	return cli_status_of(error);
}

int cli_failed(int error)
{
	return cli_failed_with(error, hf_error_detail());
}
