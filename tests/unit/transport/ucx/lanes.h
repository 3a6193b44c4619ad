/**
 * @file lanes.h
 * What a killed compute node leaves behind in a memory node whose shared memory it had reached by itself.
 */
#ifndef DMG_TEST_TRANSPORT_UCX_LANES_H
#define DMG_TEST_TRANSPORT_UCX_LANES_H

#include <stdbool.h>

/** This program, executed again as a compute node: runs it and returns true with the exit code. */
bool lanes_process_main(int argc, char **argv, int *exit_code);

void lanes_write_nothing_into_their_memory_nodes_queues(void);

#endif
