/**
 * @file api.h
 * The functions of UCX that this backend calls, behind a table that is filled when UCX is loaded.
 *
 * Nothing links UCX: when it is loaded it puts handlers on the signals of its process, and hooks into its memory
 * functions, which a library must not bring into a host, nor a program pay for that uses another backend. So it is
 * loaded when this backend is first used (library.c), by dmg_ucx_load, before which none of these may be
 * called.
 *
 * All of UCX's headers come through here, and their functions' names mean the table's entries. What the headers inline
 * stays inline, as long as it calls none of the functions itself: ucp_init does, and dmg_ucx_init stands for it.
 */
#ifndef DMG_TRANSPORT_UCX_API_H
#define DMG_TRANSPORT_UCX_API_H

#include "dmgraph/status.h"

#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>
#include <uct/api/uct.h>

/** Functions of libucp, libuct and libucs. */
#define DMG_UCX_UCP(X)                                                                                                 \
    X(ucp_am_send_nbx)                                                                                                 \
    X(ucp_atomic_op_nbx)                                                                                               \
    X(ucp_cleanup)                                                                                                     \
    X(ucp_config_modify)                                                                                               \
    X(ucp_config_read)                                                                                                 \
    X(ucp_config_release)                                                                                              \
    X(ucp_ep_close_nbx)                                                                                                \
    X(ucp_ep_create)                                                                                                   \
    X(ucp_ep_print_info)                                                                                               \
    X(ucp_ep_rkey_unpack)                                                                                              \
    X(ucp_get_nbx)                                                                                                     \
    X(ucp_get_version_string)                                                                                          \
    X(ucp_init_version)                                                                                                \
    X(ucp_mem_map)                                                                                                     \
    X(ucp_mem_query)                                                                                                   \
    X(ucp_mem_unmap)                                                                                                   \
    X(ucp_put_nbx)                                                                                                     \
    X(ucp_request_check_status)                                                                                        \
    X(ucp_request_free)                                                                                                \
    X(ucp_rkey_buffer_release)                                                                                         \
    X(ucp_rkey_destroy)                                                                                                \
    X(ucp_rkey_pack)                                                                                                   \
    X(ucp_worker_arm)                                                                                                  \
    X(ucp_worker_create)                                                                                               \
    X(ucp_worker_destroy)                                                                                              \
    X(ucp_worker_get_address)                                                                                          \
    X(ucp_worker_get_efd)                                                                                              \
    X(ucp_worker_progress)                                                                                             \
    X(ucp_worker_release_address)                                                                                      \
    X(ucp_worker_set_am_recv_handler)
#define DMG_UCX_UCT(X)                                                                                                 \
    X(uct_component_query)                                                                                             \
    X(uct_config_modify)                                                                                               \
    X(uct_config_release)                                                                                              \
    X(uct_ep_connect_to_ep)                                                                                            \
    X(uct_ep_create)                                                                                                   \
    X(uct_ep_destroy)                                                                                                  \
    X(uct_ep_get_address)                                                                                              \
    X(uct_iface_close)                                                                                                 \
    X(uct_iface_event_arm)                                                                                             \
    X(uct_iface_event_fd_get)                                                                                          \
    X(uct_iface_get_device_address)                                                                                    \
    X(uct_iface_is_reachable)                                                                                          \
    X(uct_iface_open)                                                                                                  \
    X(uct_iface_query)                                                                                                 \
    X(uct_iface_set_am_handler)                                                                                        \
    X(uct_md_close)                                                                                                    \
    X(uct_md_config_read)                                                                                              \
    X(uct_md_iface_config_read)                                                                                        \
    X(uct_md_mem_dereg)                                                                                                \
    X(uct_md_mem_reg)                                                                                                  \
    X(uct_md_mkey_pack)                                                                                                \
    X(uct_md_open)                                                                                                     \
    X(uct_md_query)                                                                                                    \
    X(uct_md_query_tl_resources)                                                                                       \
    X(uct_query_components)                                                                                            \
    X(uct_release_component_list)                                                                                      \
    X(uct_release_tl_resource_list)                                                                                    \
    X(uct_rkey_release)                                                                                                \
    X(uct_rkey_unpack)                                                                                                 \
    X(uct_worker_create)                                                                                               \
    X(uct_worker_destroy)
#define DMG_UCX_UCS(X)                                                                                                 \
    X(ucs_async_context_create)                                                                                        \
    X(ucs_async_context_destroy)                                                                                       \
    X(ucs_debug_disable_signal)                                                                                        \
    X(ucs_global_opts_set_value)                                                                                       \
    X(ucs_log_push_handler)                                                                                            \
    X(ucs_status_string)

#define DMG_UCX_MEMBER(name) __typeof__(name) *name;
typedef struct dmg_ucx_api {
    DMG_UCX_UCP(DMG_UCX_MEMBER)
    DMG_UCX_UCT(DMG_UCX_MEMBER)
    DMG_UCX_UCS(DMG_UCX_MEMBER)
    const ucs_global_opts_t *global_opts;
} dmg_ucx_api;

/** Written once, by dmg_ucx_load. */
extern dmg_ucx_api dmg_ucx;

/**
 * Load UCX, once a process. Its constructors' signal handlers are taken off again: this process's are what they were.
 * Thread-safe, as far as no other thread changes handlers meanwhile. DMG_ERR_UNSUPPORTED when there is no UCX, or an
 * older one.
 */
dmg_status dmg_ucx_load(void);

/** ucp_init, which is inline in UCX's header and calls what is not linked. */
static inline ucs_status_t dmg_ucx_init(const ucp_params_t *parameters, const ucp_config_t *config,
                                        ucp_context_h *context)
{
    return dmg_ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, parameters, config, context);
}

#ifndef DMG_UCX_TABLE_ONLY
#define ucp_am_send_nbx                (dmg_ucx.ucp_am_send_nbx)
#define ucp_atomic_op_nbx              (dmg_ucx.ucp_atomic_op_nbx)
#define ucp_cleanup                    (dmg_ucx.ucp_cleanup)
#define ucp_config_modify              (dmg_ucx.ucp_config_modify)
#define ucp_config_read                (dmg_ucx.ucp_config_read)
#define ucp_config_release             (dmg_ucx.ucp_config_release)
#define ucp_ep_close_nbx               (dmg_ucx.ucp_ep_close_nbx)
#define ucp_ep_create                  (dmg_ucx.ucp_ep_create)
#define ucp_ep_print_info              (dmg_ucx.ucp_ep_print_info)
#define ucp_ep_rkey_unpack             (dmg_ucx.ucp_ep_rkey_unpack)
#define ucp_get_nbx                    (dmg_ucx.ucp_get_nbx)
#define ucp_get_version_string         (dmg_ucx.ucp_get_version_string)
#define ucp_init_version               (dmg_ucx.ucp_init_version)
#define ucp_mem_map                    (dmg_ucx.ucp_mem_map)
#define ucp_mem_query                  (dmg_ucx.ucp_mem_query)
#define ucp_mem_unmap                  (dmg_ucx.ucp_mem_unmap)
#define ucp_put_nbx                    (dmg_ucx.ucp_put_nbx)
#define ucp_request_check_status       (dmg_ucx.ucp_request_check_status)
#define ucp_request_free               (dmg_ucx.ucp_request_free)
#define ucp_rkey_buffer_release        (dmg_ucx.ucp_rkey_buffer_release)
#define ucp_rkey_destroy               (dmg_ucx.ucp_rkey_destroy)
#define ucp_rkey_pack                  (dmg_ucx.ucp_rkey_pack)
#define ucp_worker_arm                 (dmg_ucx.ucp_worker_arm)
#define ucp_worker_create              (dmg_ucx.ucp_worker_create)
#define ucp_worker_destroy             (dmg_ucx.ucp_worker_destroy)
#define ucp_worker_get_address         (dmg_ucx.ucp_worker_get_address)
#define ucp_worker_get_efd             (dmg_ucx.ucp_worker_get_efd)
#define ucp_worker_progress            (dmg_ucx.ucp_worker_progress)
#define ucp_worker_release_address     (dmg_ucx.ucp_worker_release_address)
#define ucp_worker_set_am_recv_handler (dmg_ucx.ucp_worker_set_am_recv_handler)
#define uct_component_query            (dmg_ucx.uct_component_query)
#define uct_config_modify              (dmg_ucx.uct_config_modify)
#define uct_config_release             (dmg_ucx.uct_config_release)
#define uct_ep_connect_to_ep           (dmg_ucx.uct_ep_connect_to_ep)
#define uct_ep_create                  (dmg_ucx.uct_ep_create)
#define uct_ep_destroy                 (dmg_ucx.uct_ep_destroy)
#define uct_ep_get_address             (dmg_ucx.uct_ep_get_address)
#define uct_iface_close                (dmg_ucx.uct_iface_close)
#define uct_iface_event_arm            (dmg_ucx.uct_iface_event_arm)
#define uct_iface_event_fd_get         (dmg_ucx.uct_iface_event_fd_get)
#define uct_iface_get_device_address   (dmg_ucx.uct_iface_get_device_address)
#define uct_iface_is_reachable         (dmg_ucx.uct_iface_is_reachable)
#define uct_iface_open                 (dmg_ucx.uct_iface_open)
#define uct_iface_query                (dmg_ucx.uct_iface_query)
#define uct_iface_set_am_handler       (dmg_ucx.uct_iface_set_am_handler)
#define uct_md_close                   (dmg_ucx.uct_md_close)
#define uct_md_config_read             (dmg_ucx.uct_md_config_read)
#define uct_md_iface_config_read       (dmg_ucx.uct_md_iface_config_read)
#define uct_md_mem_dereg               (dmg_ucx.uct_md_mem_dereg)
#define uct_md_mem_reg                 (dmg_ucx.uct_md_mem_reg)
#define uct_md_mkey_pack               (dmg_ucx.uct_md_mkey_pack)
#define uct_md_open                    (dmg_ucx.uct_md_open)
#define uct_md_query                   (dmg_ucx.uct_md_query)
#define uct_md_query_tl_resources      (dmg_ucx.uct_md_query_tl_resources)
#define uct_query_components           (dmg_ucx.uct_query_components)
#define uct_release_component_list     (dmg_ucx.uct_release_component_list)
#define uct_release_tl_resource_list   (dmg_ucx.uct_release_tl_resource_list)
#define uct_rkey_release               (dmg_ucx.uct_rkey_release)
#define uct_rkey_unpack                (dmg_ucx.uct_rkey_unpack)
#define uct_worker_create              (dmg_ucx.uct_worker_create)
#define uct_worker_destroy             (dmg_ucx.uct_worker_destroy)
#define ucs_async_context_create       (dmg_ucx.ucs_async_context_create)
#define ucs_async_context_destroy      (dmg_ucx.ucs_async_context_destroy)
#define ucs_debug_disable_signal       (dmg_ucx.ucs_debug_disable_signal)
#define ucs_global_opts_set_value      (dmg_ucx.ucs_global_opts_set_value)
#define ucs_log_push_handler           (dmg_ucx.ucs_log_push_handler)
#define ucs_status_string              (dmg_ucx.ucs_status_string)
#endif

#endif
