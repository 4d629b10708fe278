/* A scripted cluster with TLS: which name the certificate of each node must have. */
#include "support/certs.h"
#include "support/resolver.h"
#include "support/tunnel.h"
#include "wire/calls.h"

static struct certs *certs;
static struct tunnel *tunnels[NODES];

static int make_certs(void **state)
{
	(void)state;
	certs = certs_make();
	return 0;
}

static int free_certs(void **state)
{
	(void)state;
	certs_free(certs);
	return 0;
}

static struct tunnel *start_tunnel(int node, const char *cert, const char *key)
{
	char *url = check_format("redis://127.0.0.1:%d", responder_port(scene.node[node]));
	struct tunnel *tunnel = tunnel_start(&(struct tunnel_options){
		.upstream_url = url, .cert = cert, .key = key, .faces_clients = true});
	scene.port[node] = (int)strtol(strchr(tunnel_host(tunnel), ':') + 1, NULL, 10);
	free(url);
	return tunnel;
}

/* The second node's certificate is for elsewhere.example, those of the others for 127.0.0.1. */
static int set_secure_scene(void **state)
{
	(void)set_scene(state);
	tunnels[0] = start_tunnel(0, certs->server_cert, certs->server_key);
	tunnels[1] = start_tunnel(1, certs->wrong_cert, certs->wrong_key);
	tunnels[2] = start_tunnel(2, certs->server_cert, certs->server_key);
	resolver_answer(tunnel_host(tunnels[1]));
	scene.options.tls_ca_file = certs->ca;
	(void)snprintf(scene.url, sizeof scene.url, "rediss+cluster://127.0.0.1:%d", scene.port[0]);
	set_map(0);
	return 0;
}

static int clear_secure_scene(void **state)
{
	close_client();
	for (int i = 0; i < NODES; i++)
		tunnel_stop(tunnels[i]);
	resolver_reset();
	return clear_scene(state);
}

/* The map in which the second node has a name, and owns the slot. */
static void name_second(void)
{
	for (int asked = 0; asked < NODES; asked++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		assert_non_null(out);
		for (int i = 0; i < NODES; i++)
			print_node(out,
			           &(struct map_style){.name = i == 1 ? ",elsewhere.example" : ""},
			           i, asked, 1);
		(void)fclose(out);
		set_map_text(asked, text);
		free(text);
	}
}

static void nodes_are_known_by_their_addresses(void **state)
{
	(void)state;
	for (int owner = 0; owner < NODES; owner += 2) {
		set_map(owner);
		open_scene(scene.url);
		acquire();
		release();
		assert_int_equal(count_all(owner, ACQUIRE), 1);
		close_client();
	}
}

static void a_node_with_a_name_is_checked_by_its_name(void **state)
{
	(void)state;
	name_second();
	open_scene(scene.url);
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
	assert_int_equal(tunnel_failures(tunnels[1]), 0);
}

static void a_name_in_a_redirection_is_checked(void **state)
{
	char moved[80];
	(void)state;
	open_scene(scene.url);
	(void)snprintf(moved, sizeof moved, "-MOVED %d elsewhere.example:%d\r\n", SLOT,
	               scene.port[1]);
	set_all_replies(0, moved);
	name_second();
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
	assert_int_equal(tunnel_failures(tunnels[1]), 0);
}

/*
 * Servers redirect to addresses by default, even if the nodes have names. Only the map has those.
 */
static void an_address_in_a_redirection_is_found_by_name_in_the_map(void **state)
{
	char moved[80];
	(void)state;
	open_scene(scene.url);
	(void)snprintf(moved, sizeof moved, "-MOVED %d 127.0.0.1:%d\r\n", SLOT, scene.port[1]);
	set_all_replies(0, moved);
	name_second();
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
}

/* Nothing is sent to a node whose certificate is for another name. */
static void a_node_with_another_name_is_refused(void **state)
{
	(void)state;
	scene.options.command_timeout_ms = 800;
	set_map(1);
	open_scene(scene.url);
	assert_int_equal(call_is_locked(), HF_ETLS);
	EXPECT_DETAIL("127.0.0.1");
	assert_true(hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = 800)) < 0);
	assert_int_equal(responder_count(scene.node[1], HELLO), 0);
	assert_true(tunnel_failures(tunnels[1]) >= 1);
}

/* The setting holds for all nodes. */
static void a_name_in_the_settings_counts_for_every_node(void **state)
{
	(void)state;
	scene.options.tls_server_name = "elsewhere.example";
	(void)snprintf(scene.url, sizeof scene.url, "rediss+cluster://127.0.0.1:%d", scene.port[1]);
	set_map(1);
	open_scene(scene.url);
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
}

#define SECURE_TEST(name)                                                                          \
	cmocka_unit_test_setup_teardown(name, set_secure_scene, clear_secure_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SECURE_TEST(nodes_are_known_by_their_addresses),
		SECURE_TEST(a_node_with_a_name_is_checked_by_its_name),
		SECURE_TEST(a_name_in_a_redirection_is_checked),
		SECURE_TEST(an_address_in_a_redirection_is_found_by_name_in_the_map),
		SECURE_TEST(a_node_with_another_name_is_refused),
		SECURE_TEST(a_name_in_the_settings_counts_for_every_node),
	};
	return cmocka_run_group_tests(tests, make_certs, free_certs);
}
