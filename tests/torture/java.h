/* One process of torture that drives threads in Java, and records what these believe. */
#ifndef TESTS_TORTURE_JAVA_H
#define TESTS_TORTURE_JAVA_H

#include "torture/worker.h"

/* As run_worker(), with Redisson or Curator. */
int run_java(const struct worker_options *options);

#endif
