/**
 * @file protocol.h
 * The tests of transport_ucx_protocol.c.
 */
#ifndef DMG_TEST_TRANSPORT_UCX_PROTOCOL_H
#define DMG_TEST_TRANSPORT_UCX_PROTOCOL_H

void malformed_messages_cost_their_sender_the_connection(void);
void requests_before_a_hello_are_refused(void);
void hellos_that_are_not_right_are_refused(void);
void spans_outside_the_segment_are_answered_with_an_error(void);
void request_for_a_lane_that_the_node_has_not_is_refused(void);
void client_that_takes_no_answers_is_cut_off(void);
void fuzzed_frames_leave_the_node_serving(void);

#endif
