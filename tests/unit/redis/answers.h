/* Replies of a real server, byte for byte, and what each of them means. */
#ifndef HF_TEST_REDIS_ANSWERS_H
#define HF_TEST_REDIS_ANSWERS_H

#include <stddef.h>

/*
 * Recorded from redis-server 7.0.15. The third column was made from the same bytes by a second
 * parser that shares nothing with ours. It gives strings up to 40 printable bytes in quotes, longer
 * ones by their length, and aggregates by their type byte with the elements in brackets.
 */
struct answer {
	const char *name;
	const char *bytes;
	size_t length;
	const char *says;
};

#define ANSWER(name, bytes, says)                                                                  \
	{                                                                                          \
		name, bytes, sizeof(bytes) - 1, says                                               \
	}

#define DIGITS_80  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGITS_400 DIGITS_80 DIGITS_80 DIGITS_80 DIGITS_80 DIGITS_80
#define DIGITS_800 DIGITS_400 DIGITS_400

/* clang-format off */
static const struct answer answers[] = {
	ANSWER("HELLO 9",
	       "-NOPROTO unsupported protocol version\r\n",
	       "-'NOPROTO unsupported protocol version'"),
	ANSWER("PING in RESP2",
	       "+PONG\r\n",
	       "+'PONG'"),
	ANSWER("missing key in RESP2",
	       "$-1\r\n",
	       "_"),
	ANSWER("null array in RESP2",
	       "*-1\r\n",
	       "_"),
	ANSWER("HELLO 3",
	       "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto"
	       "\r\n:3\r\n$2\r\nid\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r"
	       "\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
	       "%[+'server' +'redis' +'version' +'7.0.15' +'proto' :3 +'id' :3 +'mode' +'standalo"
	       "ne' +'role' +'master' +'modules' *[]]"),
	ANSWER("SET",
	       "+OK\r\n",
	       "+'OK'"),
	ANSWER("SET NX refused",
	       "_\r\n",
	       "_"),
	ANSWER("GET",
	       "$5\r\nvalue\r\n",
	       "+'value'"),
	ANSWER("empty bulk",
	       "$0\r\n\r\n",
	       "+''"),
	ANSWER("bulk of protocol bytes",
	       "$11\r\na\r\n$5\r\n\000\377\r\n\r\n",
	       "+<11>"),
	ANSWER("big bulk",
	       "$3200\r\n" DIGITS_800 DIGITS_800 DIGITS_800 DIGITS_800 "\r\n",
	       "+<3200>"),
	ANSWER("PTTL of a missing key",
	       ":-2\r\n",
	       ":-2"),
	ANSWER("INCR",
	       ":1\r\n",
	       ":1"),
	ANSWER("largest integer",
	       ":9223372036854775807\r\n",
	       ":9223372036854775807"),
	ANSWER("smallest integer",
	       ":-9223372036854775808\r\n",
	       ":-9223372036854775808"),
	ANSWER("HGETALL",
	       "%2\r\n$7\r\nowner:1\r\n$1\r\n2\r\n$7\r\nowner:2\r\n$1\r\n1\r\n",
	       "%[+'owner:1' +'2' +'owner:2' +'1']"),
	ANSWER("empty HGETALL",
	       "%0\r\n",
	       "%[]"),
	ANSWER("SMEMBERS",
	       "~3\r\n$1\r\nc\r\n$1\r\nb\r\n$1\r\na\r\n",
	       "~[+'c' +'b' +'a']"),
	ANSWER("ZRANGE WITHSCORES",
	       "*4\r\n*2\r\n$1\r\nc\r\n,-inf\r\n*2\r\n$1\r\na\r\n,1.5\r\n*2\r\n$1\r\nd\r\n,1.0000"
	       "000000000001e+300\r\n*2\r\n$1\r\nb\r\n,inf\r\n",
	       "*[*[+'c' ,'-inf'] *[+'a' ,'1.5'] *[+'d' ,'1.0000000000000001e+300'] *[+'b' ,'inf'"
	       "]]"),
	ANSWER("MGET",
	       "*3\r\n$5\r\nvalue\r\n_\r\n$1\r\n1\r\n",
	       "*[+'value' _ +'1']"),
	ANSWER("SCAN",
	       "*2\r\n$1\r\n6\r\n*4\r\n$4\r\nmost\r\n$6\r\nbinary\r\n$3\r\nbig\r\n$5\r\nleast\r\n",
	       "*[+'6' *[+'most' +'binary' +'big' +'least']]"),
	ANSWER("TIME",
	       "*2\r\n$10\r\n1794728323\r\n$6\r\n773851\r\n",
	       "*[+'1794728323' +'773851']"),
	ANSWER("WAIT",
	       ":0\r\n",
	       ":0"),
	ANSWER("EVAL integer",
	       ":42\r\n",
	       ":42"),
	ANSWER("EVAL number with a fraction cut",
	       ":3\r\n",
	       ":3"),
	ANSWER("EVAL string",
	       "$4\r\ntext\r\n",
	       "+'text'"),
	ANSWER("EVAL status",
	       "+FINE\r\n",
	       "+'FINE'"),
	ANSWER("EVAL error",
	       "-BUSY held by another\r\n",
	       "-'BUSY held by another'"),
	ANSWER("EVAL nil",
	       "_\r\n",
	       "_"),
	ANSWER("EVAL true",
	       ":1\r\n",
	       ":1"),
	ANSWER("EVAL false",
	       "_\r\n",
	       "_"),
	ANSWER("EVAL empty table",
	       "*0\r\n",
	       "*[]"),
	ANSWER("EVAL table",
	       "*4\r\n:1\r\n$3\r\ntwo\r\n_\r\n*2\r\n:3\r\n*2\r\n:4\r\n*0\r\n",
	       "*[:1 +'two' _ *[:3 *[:4 *[]]]]"),
	ANSWER("EVAL table cut at nil",
	       "*1\r\n:1\r\n",
	       "*[:1]"),
	ANSWER("EVAL RESP3 true",
	       "#t\r\n",
	       "#1"),
	ANSWER("EVAL RESP3 false",
	       "*2\r\n#t\r\n#f\r\n",
	       "*[#1 #0]"),
	ANSWER("EVAL double",
	       ",3.1415926535897931\r\n",
	       ",'3.1415926535897931'"),
	ANSWER("EVAL map",
	       "%1\r\n$7\r\ngranted\r\n:1\r\n",
	       "%[+'granted' :1]"),
	ANSWER("EVAL set",
	       "~1\r\n$3\r\none\r\n",
	       "~[+'one']"),
	ANSWER("EVAL big number",
	       "(123456789012345678901234567890\r\n",
	       "('123456789012345678901234567890'"),
	ANSWER("EVAL verbatim",
	       "=12\r\ntxt:as it is\r\n",
	       "+'as it is'"),
	ANSWER("EVAL HGETALL as map",
	       "%2\r\n$7\r\nowner:2\r\n$1\r\n1\r\n$7\r\nowner:1\r\n$1\r\n2\r\n",
	       "%[+'owner:2' +'1' +'owner:1' +'2']"),
	ANSWER("EVAL infinite double",
	       ",inf\r\n",
	       ",'inf'"),
	ANSWER("EVAL not a number",
	       ",-nan\r\n",
	       ",'-nan'"),
	ANSWER("EVAL runtime error",
	       "-WRONGTYPE Operation against a key holding the wrong kind of value script: 616360"
	       "18f4e6b5817b89791bbed242f93fa089e3, on @user_script:1.\r\n",
	       "-<134>"),
	ANSWER("EVAL compile error",
	       "-ERR Error compiling script (new function): user_script:1: unexpected symbol near"
	       " '<eof>'\r\n",
	       "-<88>"),
	ANSWER("EVALSHA unknown",
	       "-NOSCRIPT No matching script. Please use EVAL.\r\n",
	       "-<45>"),
	ANSWER("SCRIPT LOAD",
	       "$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n",
	       "+'e0e1f9fabfc9d4800c877a703b823ac0578ff8db'"),
	ANSWER("wrong type",
	       "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
	       "-<65>"),
	ANSWER("unknown command",
	       "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n",
	       "-<60>"),
	ANSWER("wrong arity",
	       "-ERR wrong number of arguments for 'get' command\r\n",
	       "-<47>"),
	ANSWER("MULTI",
	       "+OK\r\n",
	       "+'OK'"),
	ANSWER("QUEUED",
	       "+QUEUED\r\n",
	       "+'QUEUED'"),
	ANSWER("EXEC with an error inside",
	       "*2\r\n$5\r\nvalue\r\n-WRONGTYPE Operation against a key holding the wrong kind of"
	       " value\r\n",
	       "*[+'value' -<65>]"),
	ANSWER("EXEC aborted",
	       "_\r\n",
	       "_"),
	ANSWER("CLUSTER off",
	       "-ERR This instance has cluster support disabled\r\n",
	       "-<46>"),
	ANSWER("COMMAND INFO",
	       "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n~3"
	       "\r\n+@read\r\n+@string\r\n+@fast\r\n~0\r\n~1\r\n%3\r\n$5\r\nflags\r\n~2\r\n+RO\r"
	       "\n+access\r\n$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec"
	       "\r\n%1\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$5\r\nrange"
	       "\r\n$4\r\nspec\r\n%3\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit"
	       "\r\n:0\r\n~0\r\n_\r\n",
	       "*[*[+'get' :2 ~[+'readonly' +'fast'] :1 :1 :1 ~[+'@read' +'@string' +'@fast'] ~[]"
	       " ~[%[+'flags' ~[+'RO' +'access'] +'begin_search' %[+'type' +'index' +'spec' %[+'i"
	       "ndex' :1]] +'find_keys' %[+'type' +'range' +'spec' %[+'lastkey' :0 +'keystep' :1 "
	       "+'limit' :0]]]] ~[]] _]"),
	ANSWER("CONFIG GET",
	       "%5\r\n$17\r\nmaxmemory-clients\r\n$1\r\n0\r\n$27\r\nmaxmemory-eviction-tenacity\r"
	       "\n$2\r\n10\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n$17\r\nmaxmemory-sa"
	       "mples\r\n$1\r\n5\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n",
	       "%[+'maxmemory-clients' +'0' +'maxmemory-eviction-tenacity' +'10' +'maxmemory-poli"
	       "cy' +'noeviction' +'maxmemory-samples' +'5' +'maxmemory' +'0']"),
	ANSWER("CLIENT LIST",
	       "=510\r\ntxt:id=3 addr=r.sock:0 laddr=r.sock:0 fd=7 name=holdfast age=0 idle=0 fla"
	       "gs=U db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=26 qbuf-free=20448 argv-mem=10 multi-"
	       "mem=0 rbs=1024 rbp=1024 obl=0 oll=0 omem=0 tot-mem=22298 events=r cmd=client|list"
	       " user=default redir=-1 resp=3\nid=4 addr=r.sock:0 laddr=r.sock:0 fd=8 name= age=0"
	       " idle=0 flags=U db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=20474 argv-mem"
	       "=0 multi-mem=0 rbs=16384 rbp=16384 obl=0 oll=0 omem=0 tot-mem=37632 events=r cmd="
	       "set user=default redir=-1 resp=2\n\r\n",
	       "+<506>"),
	ANSWER("CLIENT TRACKINGINFO",
	       "%3\r\n$5\r\nflags\r\n~1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r"
	       "\n*0\r\n",
	       "%[+'flags' ~[+'off'] +'redirect' :-1 +'prefixes' *[]]"),
	ANSWER("INFO replication",
	       "=353\r\ntxt:# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_failover"
	       "_state:no-failover\r\nmaster_replid:571c2c763d7f6643e2974c34d2466f332a649043\r\nm"
	       "aster_replid2:0000000000000000000000000000000000000000\r\nmaster_repl_offset:0\r"
	       "\nsecond_repl_offset:-1\r\nrepl_backlog_active:0\r\nrepl_backlog_size:1048576\r\n"
	       "repl_backlog_first_byte_offset:0\r\nrepl_backlog_histlen:0\r\n\r\n",
	       "+<349>"),
	ANSWER("INFO memory",
	       "=1405\r\ntxt:# Memory\r\nused_memory:1736192\r\nused_memory_human:1.66M\r\nused_m"
	       "emory_rss:7065600\r\nused_memory_rss_human:6.74M\r\nused_memory_peak:1736192\r\nu"
	       "sed_memory_peak_human:1.66M\r\nused_memory_peak_perc:100.01%\r\nused_memory_overh"
	       "ead:902296\r\nused_memory_startup:876168\r\nused_memory_dataset:833896\r\nused_me"
	       "mory_dataset_perc:96.96%\r\nallocator_allocated:1809632\r\nallocator_active:19660"
	       "80\r\nallocator_resident:4636672\r\ntotal_system_memory:25276518400\r\ntotal_syst"
	       "em_memory_human:23.54G\r\nused_memory_lua:46080\r\nused_memory_vm_eval:46080\r\nu"
	       "sed_memory_lua_human:45.00K\r\nused_memory_scripts_eval:3128\r\nnumber_of_cached_"
	       "scripts:23\r\nnumber_of_functions:0\r\nnumber_of_libraries:0\r\nused_memory_vm_fu"
	       "nctions:33792\r\nused_memory_vm_total:79872\r\nused_memory_vm_total_human:78.00K"
	       "\r\nused_memory_functions:200\r\nused_memory_scripts:3328\r\nused_memory_scripts_"
	       "human:3.25K\r\nmaxmemory:0\r\nmaxmemory_human:0B\r\nmaxmemory_policy:noeviction\r"
	       "\nallocator_frag_ratio:1.09\r\nallocator_frag_bytes:156448\r\nallocator_rss_ratio"
	       ":2.36\r\nallocator_rss_bytes:2670592\r\nrss_overhead_ratio:1.52\r\nrss_overhead_b"
	       "ytes:2428928\r\nmem_fragmentation_ratio:6.97\r\nmem_fragmentation_bytes:6051984\r"
	       "\nmem_not_counted_for_evict:0\r\nmem_replication_backlog:0\r\nmem_total_replicati"
	       "on_buffers:0\r\nmem_clients_slaves:0\r\nmem_clients_normal:22312\r\nmem_cluster_l"
	       "inks:0\r\nmem_aof_buffer:0\r\nmem_allocator:jemalloc-5.3.0\r\nactive_defrag_runni"
	       "ng:0\r\nlazyfree_pending_objects:0\r\nlazyfreed_objects:0\r\n\r\n",
	       "+<1401>"),
	ANSWER("ROLE",
	       "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
	       "*[+'master' :0 *[]]"),
	ANSWER("DEBUG PROTOCOL string",
	       "$11\r\nHello World\r\n",
	       "+'Hello World'"),
	ANSWER("DEBUG PROTOCOL integer",
	       ":12345\r\n",
	       ":12345"),
	ANSWER("DEBUG PROTOCOL double",
	       ",3.141\r\n",
	       ",'3.141'"),
	ANSWER("DEBUG PROTOCOL bignum",
	       "(1234567999999999999999999999999999999\r\n",
	       "('1234567999999999999999999999999999999'"),
	ANSWER("DEBUG PROTOCOL null",
	       "_\r\n",
	       "_"),
	ANSWER("DEBUG PROTOCOL array",
	       "*3\r\n:0\r\n:1\r\n:2\r\n",
	       "*[:0 :1 :2]"),
	ANSWER("DEBUG PROTOCOL set",
	       "~3\r\n:0\r\n:1\r\n:2\r\n",
	       "~[:0 :1 :2]"),
	ANSWER("DEBUG PROTOCOL map",
	       "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
	       "%[:0 #0 :1 #1 :2 #0]"),
	ANSWER("DEBUG PROTOCOL attrib",
	       "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real rep"
	       "ly following the attribute\r\n",
	       "+'Some real reply following the attribute'"),
	ANSWER("DEBUG PROTOCOL push",
	       ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n",
	       ">[+'server-cpu-usage' :42]"),
	ANSWER("reply after the push",
	       "$40\r\nSome real reply following the push reply\r\n",
	       "+'Some real reply following the push reply'"),
	ANSWER("DEBUG PROTOCOL verbatim",
	       "=29\r\ntxt:This is a verbatim\nstring\r\n",
	       "+<25>"),
	ANSWER("DEBUG PROTOCOL true",
	       "#t\r\n",
	       "#1"),
	ANSWER("DEBUG PROTOCOL false",
	       "#f\r\n",
	       "#0"),
	ANSWER("SUBSCRIBE",
	       ">3\r\n$9\r\nsubscribe\r\n$4\r\nchan\r\n:1\r\n",
	       ">[+'subscribe' +'chan' :1]"),
	ANSWER("second of SUBSCRIBE",
	       ">3\r\n$9\r\nsubscribe\r\n$5\r\nother\r\n:2\r\n",
	       ">[+'subscribe' +'other' :2]"),
	ANSWER("PSUBSCRIBE",
	       ">3\r\n$10\r\npsubscribe\r\n$3\r\nch*\r\n:3\r\n",
	       ">[+'psubscribe' +'ch*' :3]"),
	ANSWER("SSUBSCRIBE",
	       ">3\r\n$10\r\nssubscribe\r\n$5\r\nshard\r\n:1\r\n",
	       ">[+'ssubscribe' +'shard' :1]"),
	ANSWER("PING while subscribed",
	       "$10\r\nstill here\r\n",
	       "+'still here'"),
	ANSWER("message",
	       ">3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n$8\r\nreleased\r\n",
	       ">[+'message' +'chan' +'released']"),
	ANSWER("pmessage",
	       ">4\r\n$8\r\npmessage\r\n$3\r\nch*\r\n$4\r\nchan\r\n$8\r\nreleased\r\n",
	       ">[+'pmessage' +'ch*' +'chan' +'released']"),
	ANSWER("smessage",
	       ">3\r\n$8\r\nsmessage\r\n$5\r\nshard\r\n$1\r\n0\r\n",
	       ">[+'smessage' +'shard' +'0']"),
	ANSWER("empty message",
	       ">3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$0\r\n\r\n",
	       ">[+'message' +'other' +'']"),
	ANSWER("own message ahead of the reply",
	       ">3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$3\r\nown\r\n",
	       ">[+'message' +'other' +'own']"),
	ANSWER("reply to PUBLISH",
	       ":1\r\n",
	       ":1"),
	ANSWER("UNSUBSCRIBE",
	       ">3\r\n$11\r\nunsubscribe\r\n$4\r\nchan\r\n:2\r\n",
	       ">[+'unsubscribe' +'chan' :2]"),
	ANSWER("SUNSUBSCRIBE",
	       ">3\r\n$12\r\nsunsubscribe\r\n$5\r\nshard\r\n:0\r\n",
	       ">[+'sunsubscribe' +'shard' :0]"),
	ANSWER("PUNSUBSCRIBE",
	       ">3\r\n$12\r\npunsubscribe\r\n$3\r\nch*\r\n:1\r\n",
	       ">[+'punsubscribe' +'ch*' :1]"),
	ANSWER("UNSUBSCRIBE from nothing",
	       ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n",
	       ">[+'unsubscribe' _ :0]"),
	ANSWER("invalidate",
	       ">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\nname\r\n",
	       ">[+'invalidate' *[+'name']]"),
	ANSWER("invalidate all",
	       ">2\r\n$10\r\ninvalidate\r\n_\r\n",
	       ">[+'invalidate' _]"),
	ANSWER("NOAUTH",
	       "-NOAUTH Authentication required.\r\n",
	       "-'NOAUTH Authentication required.'"),
	ANSWER("HELLO without AUTH",
	       "-NOAUTH HELLO must be called with the client already authenticated, otherwise the"
	       " HELLO AUTH <user> <pass> option can be used to authenticate the client and selec"
	       "t the RESP protocol version at the same time\r\n",
	       "-<205>"),
	ANSWER("WRONGPASS",
	       "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
	       "-<61>"),
	ANSWER("HELLO with AUTH",
	       "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto"
	       "\r\n:3\r\n$2\r\nid\r\n:6\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r"
	       "\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
	       "%[+'server' +'redis' +'version' +'7.0.15' +'proto' :3 +'id' :6 +'mode' +'standalo"
	       "ne' +'role' +'master' +'modules' *[]]"),
	ANSWER("OOM",
	       "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
	       "-<55>"),
	ANSWER("NOREPLICAS",
	       "-NOREPLICAS Not enough good replicas to write.\r\n",
	       "-<45>"),
	ANSWER("READONLY",
	       "-READONLY You can't write against a read only replica.\r\n",
	       "-<53>"),
	ANSWER("ROLE of a replica",
	       "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$7\r\nconnect\r\n:-1\r\n",
	       "*[+'slave' +'127.0.0.1' :1 +'connect' :-1]"),
	ANSWER("HELLO 3 in a cluster",
	       "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto"
	       "\r\n:3\r\n$2\r\nid\r\n:3\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nma"
	       "ster\r\n$7\r\nmodules\r\n*0\r\n",
	       "%[+'server' +'redis' +'version' +'7.0.15' +'proto' :3 +'id' :3 +'mode' +'cluster'"
	       " +'role' +'master' +'modules' *[]]"),
	ANSWER("CLUSTERDOWN",
	       "-CLUSTERDOWN Hash slot not served\r\n",
	       "-'CLUSTERDOWN Hash slot not served'"),
	ANSWER("CLUSTER SLOTS",
	       "*1\r\n*3\r\n:0\r\n:16000\r\n*4\r\n$0\r\n\r\n:47603\r\n$40\r\n8c224af214e585be0f71"
	       "af5442a728f574a9c344\r\n%0\r\n",
	       "*[*[:0 :16000 *[+'' :47603 +'8c224af214e585be0f71af5442a728f574a9c344' %[]]]]"),
	ANSWER("CLUSTER SHARDS",
	       "*1\r\n%2\r\n$5\r\nslots\r\n*2\r\n:0\r\n:16000\r\n$5\r\nnodes\r\n*1\r\n%7\r\n$2\r"
	       "\nid\r\n$40\r\n8c224af214e585be0f71af5442a728f574a9c344\r\n$4\r\nport\r\n:47603\r"
	       "\n$2\r\nip\r\n$0\r\n\r\n$8\r\nendpoint\r\n$0\r\n\r\n$4\r\nrole\r\n$6\r\nmaster\r"
	       "\n$18\r\nreplication-offset\r\n:0\r\n$6\r\nhealth\r\n$6\r\nonline\r\n",
	       "*[%[+'slots' *[:0 :16000] +'nodes' *[%[+'id' +'8c224af214e585be0f71af5442a728f574"
	       "a9c344' +'port' :47603 +'ip' +'' +'endpoint' +'' +'role' +'master' +'replication-"
	       "offset' :0 +'health' +'online']]]]"),
	ANSWER("CROSSSLOT",
	       "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
	       "-<53>"),
};
/* clang-format on */

#endif
