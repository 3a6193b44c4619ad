/**
 * @file limits.h
 * What the UCX backend does about calls of UCX that do not return, and about variables that would make them so.
 */
#ifndef DMG_TEST_TRANSPORT_UCX_LIMITS_H
#define DMG_TEST_TRANSPORT_UCX_LIMITS_H

#include <stdbool.h>

/** This program, executed again for a case that leaves UCX unusable: runs it and returns true with the exit code. */
bool limits_process_main(int argc, char **argv, int *exit_code);

void step_that_does_not_return_is_given_up(void);
void time_in_which_the_process_was_stopped_is_not_waited(void);
void worker_that_finds_no_port_is_given_up(void);
void host_with_a_variable_that_may_not_pass_is_refused(void);

#endif
