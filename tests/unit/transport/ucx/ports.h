/**
 * @file ports.h
 * Who of the UCX backend listens where, and what strangers can do there.
 */
#ifndef DMG_TEST_TRANSPORT_UCX_PORTS_H
#define DMG_TEST_TRANSPORT_UCX_PORTS_H

void nobody_listens_at_a_port_on_one_host(void);
void memory_nodes_alone_listen_and_at_one_port(void);
void garbage_on_any_port_leaves_the_node_serving(void);

#endif
