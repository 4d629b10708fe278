/* The table of settings. A test compares the manual, the header and docs/settings.md with it. */
#include "api/setting.h"

#include "api/settings.h"

#include <assert.h>

#define DAY_MS      INT64_C(86400000)
#define YEARS_10_MS (3650 * DAY_MS)

/* Where the option is, and where its value goes. */
#define STORED_AS(option, setting)                                                                 \
	.field = #option, .option_at = offsetof(hf_client_options, option),                        \
	.stored_at = offsetof(struct hf__settings, setting)
#define FIELD(name) STORED_AS(name, name)

#define TEXT     .type = HF__SETTING_TEXT
#define DURATION .type = HF__SETTING_DURATION
#define FLAG     .type = HF__SETTING_FLAG, .high = 1
#define COUNT    .type = HF__SETTING_COUNT
#define REDIS    .backend = HF__SETTING_REDIS
#define SENTINEL .backend = HF__SETTING_SENTINEL
#define ZK       .backend = HF__SETTING_ZK
#define TLS      .tls = true

#define USE_AUTH "for ZooKeeper use auth=digest:user:password instead"

#define RANGE(least, most) .low = (least), .high = (most)

/* clang-format off */
const struct hf__setting hf__setting_table[] = {
	{.key = "user", FIELD(user), REDIS, .type = HF__SETTING_USER,
	 .variable = "HOLDFAST_USER", .no_text = "the server's default user",
	 .why_not_zk = USE_AUTH,
	 .about = "User name for the login; the user part of the URL can give it too."},
	{.key = "password", FIELD(password), REDIS, .type = HF__SETTING_PASSWORD,
	 .variable = "HOLDFAST_PASSWORD", .no_text = "none", .why_not_zk = USE_AUTH,
	 .about = "Password; in a URL it belongs in the user part, not in the query."},
	{.key = "password_file", STORED_AS(password_file, password), REDIS,
	 .type = HF__SETTING_PASSWORD_FILE,
	 .variable = "HOLDFAST_PASSWORD_FILE", .no_text = "none", .why_not_zk = USE_AUTH,
	 .about = "File whose first line is the password."},
	{.key = "sentinel_user", FIELD(sentinel_user), SENTINEL, .type = HF__SETTING_USER,
	 .variable = "HOLDFAST_SENTINEL_USER", .no_text = "the Sentinels' default user",
	 .about = "User name for the login at the Sentinels."},
	{.key = "sentinel_password", FIELD(sentinel_password), SENTINEL,
	 .type = HF__SETTING_PASSWORD,
	 .variable = "HOLDFAST_SENTINEL_PASSWORD", .no_text = "none",
	 .about = "Password for the Sentinels; in a URL, use sentinel_password_file instead."},
	{.key = "sentinel_password_file", STORED_AS(sentinel_password_file, sentinel_password),
	 SENTINEL, .type = HF__SETTING_PASSWORD_FILE,
	 .variable = "HOLDFAST_SENTINEL_PASSWORD_FILE", .no_text = "none",
	 .about = "File whose first line is the password for the Sentinels."},
	{.key = "sharded", FIELD(sharded), REDIS, TEXT, .no_text = "auto",
	 .values = "auto, on, off",
	 .about = "How releases are announced on a cluster: auto, on (with SPUBLISH) or off "
		  "(with PUBLISH); must match Java's setting."},
	{.key = "nat", FIELD(nat), REDIS, TEXT, .no_text = "none",
	 .about = "Addresses to use instead of those that Sentinels or a cluster report, as "
		  "from:to or from:port:to:port, separated by commas."},
	{.key = "db", FIELD(database), REDIS, COUNT, RANGE(0, 65535), .preset = 0,
	 .about = "Number of the database; the path of the URL can give it too."},
	{.key = "client_name", FIELD(client_name), REDIS, .type = HF__SETTING_WORD,
	 .text = "holdfast",
	 .about = "Name of the connection in the server's CLIENT LIST."},
	{.key = "tls_ca", FIELD(tls_ca_file), TLS, TEXT,
	 .variable = "HOLDFAST_TLS_CA", .no_text = "the system's store",
	 .about = "File with the certificates to trust."},
	{.key = "tls_cert", FIELD(tls_cert_file), TLS, TEXT,
	 .variable = "HOLDFAST_TLS_CERT", .no_text = "none",
	 .about = "File with the client certificate."},
	{.key = "tls_key", FIELD(tls_key_file), TLS, TEXT,
	 .variable = "HOLDFAST_TLS_KEY", .no_text = "none",
	 .about = "File with the key of the client certificate."},
	{.key = "tls_server_name", FIELD(tls_server_name), TLS, REDIS, TEXT,
	 .no_text = "the host that the client connects to",
	 .why_not_zk = "ZooKeeper's client library checks no names",
	 .about = "Host name that the server's certificate must contain."},
	{.key = "tls_insecure", FIELD(tls_insecure), TLS, REDIS, FLAG,
	 .why_not_zk = "ZooKeeper's client library checks every certificate",
	 .about = "Encrypt the connection, but accept any certificate."},
	{.key = "connect_timeout", FIELD(connect_timeout_ms), DURATION, RANGE(1, DAY_MS),
	 .preset = 5000,
	 .about = "Time limit for one connection attempt, until the connection is ready for use."},
	{.key = "command_timeout", FIELD(command_timeout_ms), DURATION, RANGE(1, DAY_MS),
	 .preset = 3000,
	 .about = "Time limit for the reply to one command."},
	{.key = "subscribe_timeout", FIELD(subscribe_timeout_ms), REDIS, DURATION,
	 RANGE(1, DAY_MS), .preset = 7500,
	 .about = "Time limit for the reply to one subscription."},
	{.key = "watchdog", FIELD(watchdog_ms), DURATION, RANGE(100, YEARS_10_MS),
	 .preset = 30000,
	 .about = "Lease of locks that are acquired without one; it is renewed whenever a "
		  "third of it has passed."},
	{.key = "fair_wait", FIELD(fair_wait_ms), REDIS, DURATION, RANGE(100, YEARS_10_MS),
	 .preset = 300000,
	 .about = "How long a fair waiter without a deadline keeps its place among Java's waiters "
		  "once its turn is overdue."},
	{.key = "peer_skew", FIELD(peer_skew_ms), REDIS, DURATION, RANGE(1, 60000),
	 .preset = 1000,
	 .about = "How far the clocks of Java peers may be off; this time, but at most a "
		  "quarter of the lease, is subtracted from the validity of permits and groups."},
	{.key = "replicas", FIELD(replicas), REDIS, COUNT, RANGE(0, 100), .preset = 0,
	 .why_not_zk = "a majority of the ensemble acknowledges every grant on ZooKeeper",
	 .about = "Number of replicas that must acknowledge a grant before it counts, unless the "
		  "call gives one."},
	{.key = "sync_timeout", FIELD(sync_timeout_ms), REDIS, DURATION, RANGE(1, DAY_MS),
	 .preset = 1000,
	 .about = "Time limit for replicas to acknowledge a grant."},
	{.key = "name_prefix", FIELD(name_prefix), TEXT, .no_text = "none",
	 .about = "Text that is put before every name; a program can set map_name instead."},
	{.key = "history", FIELD(history), REDIS, TEXT, .no_text = "no",
	 .values = "no, yes, contended, 1 to 1000000",
	 .why_not_zk = "only Redis can keep a history; on ZooKeeper record what on_event reports",
	 .about = "Keep a history of holds on the server: no, yes, contended, or the number of "
		  "entries to keep."},
	{.key = "watchdog_batch", FIELD(watchdog_batch), COUNT, RANGE(1, 100), .preset = 100,
	 .about = "Largest number of locks that one renewal script renews."},
	{.key = "lazy", FIELD(lazy), FLAG,
	 .about = "Connect on first use, not when the client is opened."},
	{.key = "metrics", FIELD(metrics), .type = HF__SETTING_WIDE_FLAG, .high = 1,
	 .about = "Measure how long locks are waited for and held; hf_client_metrics() writes the results."},
	{.key = "session", FIELD(session_ms), ZK, DURATION, RANGE(100, DAY_MS), .preset = 30000,
	 .about = "Session timeout to request from the servers; watchdog, if given, takes precedence."},
	{.key = "auth", FIELD(auth), ZK, TEXT,
	 .variable = "HOLDFAST_AUTH", .no_text = "none",
	 .about = "Credentials, as digest:user:password."},
	{.key = "acl", FIELD(acl), ZK, TEXT, .no_text = "creator with auth, otherwise open",
	 .values = "creator, open",
	 .about = "Who may use the nodes that this client creates: creator or open."},
};
/* clang-format on */

static_assert(sizeof(hf__setting_table) == HF__SETTING_ROWS * sizeof(hf__setting_table[0]),
              "HF__SETTING_ROWS is the number of rows");
