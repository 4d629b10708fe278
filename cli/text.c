/* Text: durations in and out, JSON, names that may contain anything, complaints. */
#include "cli.h"
#include "out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEN_YEARS_MS      INT64_C(315576000000)
#define LONGEST_COMPLAINT 4095
#define LONGEST_PORT      5 /* digits */

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

/* The integer part and the fraction are read separately, so that 0.1 is exactly 100 ms. */
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

int64_t cli_parse_duration(const char *option, const char *text)
{
	const char *at = text;
	int64_t whole, millionths;
	bool good = read_decimal(&at, &whole, &millionths);
	int64_t unit = good ? unit_ms(at) : 0;
	if (!unit) {
		cli_complain(
			"%s: '%s' is not a time; use seconds, or a number with ms, s, m, h or d",
			option, text);
		return -1;
	}
	if (whole > TEN_YEARS_MS / unit) {
		cli_complain("%s: '%s' is longer than ten years", option, text);
		return -1;
	}
	int64_t ms = whole * unit + (millionths * unit + 999999) / 1000000;
	if (ms > TEN_YEARS_MS) {
		cli_complain("%s: '%s' is longer than ten years", option, text);
		return -1;
	}
	return ms;
}

const char *cli_format_span(int64_t ms, char ret_text[32])
{
	if (ms < 1000)
		snprintf(ret_text, 32, "%" PRId64 "ms", ms);
	else if (ms < 60000)
		snprintf(ret_text, 32, "%.1fs", (double)ms / 1000);
	else if (ms < 3600000)
		snprintf(ret_text, 32, "%" PRId64 "min", ms / 60000);
	else
		snprintf(ret_text, 32, "%.1fh", (double)ms / 3600000);
	return ret_text;
}

/* ---- text from others ---- */

/* Returns the length of the UTF-8 character that starts here, or 0 if there is none. */
static size_t read_character(const unsigned char *s, size_t left, uint32_t *ret_point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (length == 0 || length > left || s[0] > 0xf4)
		return 0;
	uint32_t point = length == 1 ? s[0] : s[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (s[i] & 0x3fu);
	}
	bool surrogate = point >= 0xd800 && point <= 0xdfff;
	*ret_point = point;
	return point < least[length] || surrogate || point > 0x10ffff ? 0 : length;
}

/* Control characters, invisible ones, and those that change the writing direction. */
static bool is_unsafe(uint32_t point)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
	              {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
	              {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	return false;
}

/*
 * Unsafe bytes become \xNN; with `doubles` a real backslash is doubled to distinguish it from
 * these.
 */
static void write_escaped(FILE *out, const char *text, size_t length, bool doubles)
{
	const unsigned char *at = (const unsigned char *)text;
	while (length > 0) {
		uint32_t point;
		size_t n = read_character(at, length, &point);
		if (n == 0 || is_unsafe(point)) {
			n = n ? n : 1;
			for (size_t i = 0; i < n; i++)
				fprintf(out, "\\x%02x", at[i]);
		} else if (point == '\\' && doubles) {
			fputs("\\\\", out);
		} else {
			fwrite(at, 1, n, out);
		}
		at += n;
		length -= n;
	}
}

void cli_write_plain(FILE *out, const char *text, size_t length)
{
	write_escaped(out, text, length, true);
}

static void write_json_escape(FILE *out, uint32_t point)
{
	if (point < 0x10000)
		fprintf(out, "\\u%04x", (unsigned)point);
	else
		fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((point - 0x10000) >> 10)),
		        (unsigned)(0xdc00 + ((point - 0x10000) & 0x3ff)));
}

void cli_write_json(FILE *out, const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text;
	fputc('"', out);
	while (length > 0) {
		uint32_t point;
		size_t n = read_character(at, length, &point);
		if (n == 0)
			fputs("\xef\xbf\xbd", out); /* the byte is not UTF-8 */
		else if (point == '"' || point == '\\')
			fprintf(out, "\\%c", (int)point);
		else if (is_unsafe(point))
			write_json_escape(out, point);
		else
			fwrite(at, 1, n, out);
		n = n ? n : 1;
		at += n;
		length -= n;
	}
	fputc('"', out);
}

void cli_json_text(FILE *out, const char *name, const char *text, bool known)
{
	fprintf(out, ",\"%s\":", name);
	if (known)
		cli_write_json(out, text, strlen(text));
	else
		fputs("null", out);
}

void cli_json_number(FILE *out, const char *name, int64_t number, bool known)
{
	if (known)
		fprintf(out, ",\"%s\":%" PRId64, name, number);
	else
		fprintf(out, ",\"%s\":null", name);
}

/* ---- complaints ---- */

/* Replaces a part of a text with at most three stars. */
static void hide_part(char *from, char *to)
{
	size_t stars = to - from < 3 ? (size_t)(to - from) : 3;
	memmove(from + stars, to, strlen(to) + 1);
	memset(from, '*', stars);
}

/*
 * The end of the word that starts here, without the quote and the punctuation that may follow a
 * URL.
 */
static char *find_url_end(char *url)
{
	char *end = url + strcspn(url, " \t\n");
	while (end > url && strchr("'\";:,.)", end[-1]))
		end--;
	return end;
}

/*
 * A URL without an '@' may be one that was cut off or mistyped. What follows a colon in its host
 * part is then a password, unless it is a port.
 */
static void hide_password_without_at(char *host, char *end)
{
	while (host < end) {
		if (*host == '[' && memchr(host, ']', (size_t)(end - host)))
			host = strchr(host, ']'); /* the colons of an IPv6 address */
		char *colon = host + strcspn(host, ":,/?");
		if (colon >= end || *colon == '/' || *colon == '?')
			return;
		host = colon + 1;
		if (*colon == ',')
			continue;
		size_t digits = strspn(host, "0123456789");
		bool is_port = digits <= LONGEST_PORT &&
		               (host + digits >= end || strchr(",/?", host[digits]));
		if (!is_port) {
			hide_part(host, end);
			return;
		}
		host += digits;
	}
}

/* A password may contain anything but a blank: quotes, slashes, and further '@'s. */
static void hide_secrets(char *text)
{
	for (char *at = strstr(text, "://"); at; at = strstr(at, "://")) {
		at += 3;
		char *auth = strstr(at, "auth=");
		if (auth && auth < find_url_end(at)) {
			auth += strlen("auth=");
			char *end = auth + strcspn(auth, "& \t\n");
			hide_part(auth, *end == '&' ? end : find_url_end(auth));
		}
		char *end = find_url_end(at);
		char *last = memrchr(at, '@', (size_t)(end - at));
		if (last)
			hide_part(at, last);
		else
			hide_password_without_at(at, end);
	}
}

static struct out *complaints;

void cli_complain_through(struct out *out)
{
	complaints = out;
}

/* Writes the line in one piece, so that other writers to the same file cannot get in between. */
static void write_line(const char *text)
{
	char *line = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&line, &length);
	if (!stream)
		return;
	fputs("holdfast: ", stream);
	write_escaped(stream, text, strlen(text), false);
	fputc('\n', stream);
	bool whole = fclose(stream) == 0;
	if (whole && complaints)
		(void)out_put(complaints, line, length);
	else if (whole)
		fwrite(line, 1, length, stderr);
	free(line);
}

/* Secrets are hidden before the text is cut: half a URL does not show where its password ends. */
void cli_complain(const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return;
	hide_secrets(text);
	if (strlen(text) > LONGEST_COMPLAINT)
		text[LONGEST_COMPLAINT] = 0;
	write_line(text);
	free(text);
}

/* ---- failures ---- */

int cli_exit_status(int error)
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
	case HF_EFULL:
	case HF_ENOREPLICAS: return EXIT_REFUSED;
	case HF_EINVAL:
	case HF_ENOTSUP: return EXIT_USAGE;
	default: return EXIT_SYSTEM;
	}
}

/*
 * Without a password nothing was refused, so there is nothing to check. The library does not know
 * our option.
 */
static bool is_password_missing(int error, const char *detail)
{
	return error == HF_EAUTH && strstr(detail, "NOAUTH: ");
}

static const char *get_advice(int error, const char *detail)
{
	if (is_password_missing(error, detail))
		return strstr(detail, "Sentinel") ? "" : "; or use --password-file";
	switch (error) {
	case HF_ECONFLICT: return "; the key was not changed; use another name";
	case HF_EUNREACHABLE: return "; is the server running, and is the URL right?";
	case HF_EAUTH: return "; check the user and the password (--password-file)";
	case HF_EDENIED: return "; 'holdfast doctor' prints the ACL line that grants it";
	case HF_EREADONLY: return "; connect to the primary";
	case HF_EFULL: return "; give the server more memory";
	case HF_ENOTNOW: return "; try again when it is ready";
	case HF_ENOREPLICAS: return "; are the replicas running and connected?";
	case HF_EPROTOCOL: return strstr(detail, "TLS") ? "" : "; is it a Redis or Valkey server?";
	case HF_ETLS:
		return "; rediss:// and zks:// need a server that speaks TLS, and tls_ca its "
		       "authority's certificate";
	default: return "";
	}
}

int cli_report_failure_with(int error, const char *detail)
{
	/* For these errors the detail says more than the general text. */
	bool plain = *detail && (error == HF_EINVAL || error == HF_ESYSTEM || error == HF_ENOTSUP ||
	                         is_password_missing(error, detail));
	cli_complain("%s%s%s%s", plain ? "" : hf_strerror(error), *detail && !plain ? ": " : "",
	             detail, get_advice(error, detail));
	return cli_exit_status(error);
}

int cli_report_failure(int error)
{
	return cli_report_failure_with(error, hf_error_detail());
}

int cli_report_late_failure(int error, const char *detail)
{
	bool chroot = error == HF_EINVAL && strstr(detail, "chroot");
	int status = cli_report_failure_with(error, detail);
	return chroot ? EXIT_CONFIG : status;
}
