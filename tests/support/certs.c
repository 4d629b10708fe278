/* Certificates for TLS tests, made fresh with the openssl command. */
#include "support/certs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/process.h"
#include "support/temp.h"

#define CURVE "ec_paramgen_curve:P-256"

/*
 * The section "ca" is for the openssl ca command, which is the only one that can sign for the past.
 */
static const char config_format[] = "[req]\n"
				    "prompt = no\n"
				    "distinguished_name = name\n"
				    "[name]\n"
				    "O = Holdfast tests\n"
				    "[authority]\n"
				    "basicConstraints = critical, CA:TRUE\n"
				    "keyUsage = critical, keyCertSign, cRLSign\n"
				    "subjectKeyIdentifier = hash\n"
				    "[server]\n"
				    "basicConstraints = critical, CA:FALSE\n"
				    "subjectAltName = DNS:localhost, IP:127.0.0.1\n"
				    "extendedKeyUsage = serverAuth\n"
				    "[wrong]\n"
				    "basicConstraints = critical, CA:FALSE\n"
				    "subjectAltName = DNS:elsewhere.example\n"
				    "extendedKeyUsage = serverAuth\n"
				    "[client]\n"
				    "basicConstraints = critical, CA:FALSE\n"
				    "extendedKeyUsage = clientAuth\n"
				    "[ca]\n"
				    "default_ca = past\n"
				    "[past]\n"
				    "database = %s/index\n"
				    "new_certs_dir = %s\n"
				    "rand_serial = yes\n"
				    "default_md = sha256\n"
				    "policy = any\n"
				    "x509_extensions = server\n"
				    "[any]\n"
				    "organizationName = optional\n"
				    "commonName = supplied\n";

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	if (!file || fputs(text, file) < 0 || fclose(file))
		check_fail("cannot write %s: %s", path, strerror(errno));
}

static char *path_of(const struct certs *certs, const char *name, const char *ending)
{
	return check_format("%s/%s.%s", certs->dir, name, ending);
}

static void write_config(const struct certs *certs)
{
	char *path = path_of(certs, "openssl", "cnf");
	char *text = check_format(config_format, certs->dir, certs->dir);
	write_file(path, text);
	free(text);
	free(path);
	path = check_format("%s/index", certs->dir);
	write_file(path, "");
	free(path);
}

static void check_made(int status, const char *output)
{
	if (status < 0)
		check_skip("cannot run openssl: %s", strerror(-status));
	if (status)
		check_fail("openssl failed: %s", output);
}

/* Makes NAME.key and NAME.pem; without a signer the certificate signs itself. */
static void make_cert(const struct certs *certs, const char *name, const char *section,
                      const char *signer)
{
	char *config = path_of(certs, "openssl", "cnf");
	char *cert = path_of(certs, name, "pem");
	char *key = path_of(certs, name, "key");
	char *subject = check_format("/O=Holdfast tests/CN=%s", name);
	char *signer_cert = signer ? path_of(certs, signer, "pem") : NULL;
	char *signer_key = signer ? path_of(certs, signer, "key") : NULL;
	char output[4096];
	int status =
		process_call(output, sizeof(output), "openssl", "req", "-x509", "-newkey", "ec",
	                     "-pkeyopt", CURVE, "-nodes", "-config", config, "-extensions", section,
	                     "-subj", subject, "-days", "30", "-keyout", key, "-out", cert,
	                     signer ? "-CA" : NULL, signer_cert, "-CAkey", signer_key, NULL);
	check_made(status, output);
	free(config);
	free(cert);
	free(key);
	free(subject);
	free(signer_cert);
	free(signer_key);
}

static void make_expired(const struct certs *certs)
{
	char *config = path_of(certs, "openssl", "cnf");
	char *request = path_of(certs, "expired", "csr");
	char *ca_key = path_of(certs, "ca", "key");
	char output[4096];
	int status = process_call(output, sizeof(output), "openssl", "req", "-new", "-newkey", "ec",
	                          "-pkeyopt", CURVE, "-nodes", "-config", config, "-subj",
	                          "/O=Holdfast tests/CN=expired", "-keyout", certs->expired_key,
	                          "-out", request, NULL);
	check_made(status, output);
	status = process_call(output, sizeof(output), "openssl", "ca", "-batch", "-notext",
	                      "-config", config, "-cert", certs->ca, "-keyfile", ca_key,
	                      "-startdate", "20200101000000Z", "-enddate", "20200131000000Z", "-in",
	                      request, "-out", certs->expired_cert, NULL);
	check_made(status, output);
	free(config);
	free(request);
	free(ca_key);
}

struct certs *certs_make(void)
{
	struct certs *certs = check_alloc(sizeof(*certs));
	certs->dir = temp_dir_make();
	certs->ca = path_of(certs, "ca", "pem");
	certs->server_cert = path_of(certs, "server", "pem");
	certs->server_key = path_of(certs, "server", "key");
	certs->wrong_cert = path_of(certs, "wrong", "pem");
	certs->wrong_key = path_of(certs, "wrong", "key");
	certs->expired_cert = path_of(certs, "expired", "pem");
	certs->expired_key = path_of(certs, "expired", "key");
	certs->self_cert = path_of(certs, "self", "pem");
	certs->self_key = path_of(certs, "self", "key");
	certs->client_cert = path_of(certs, "client", "pem");
	certs->client_key = path_of(certs, "client", "key");
	certs->other_ca = path_of(certs, "other", "pem");
	write_config(certs);
	make_cert(certs, "ca", "authority", NULL);
	make_cert(certs, "other", "authority", NULL);
	make_cert(certs, "server", "server", "ca");
	make_cert(certs, "wrong", "wrong", "ca");
	make_cert(certs, "client", "client", "ca");
	make_cert(certs, "self", "server", NULL);
	make_expired(certs);
	return certs;
}

void certs_free(struct certs *certs)
{
	if (!certs)
		return;
	char *const paths[] = {certs->ca,          certs->server_cert, certs->server_key,
	                       certs->wrong_cert,  certs->wrong_key,   certs->expired_cert,
	                       certs->expired_key, certs->self_cert,   certs->self_key,
	                       certs->client_cert, certs->client_key,  certs->other_ca};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		free(paths[i]);
	temp_dir_remove(certs->dir);
	free(certs);
}
