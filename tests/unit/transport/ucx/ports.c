#include "unit/transport/ucx/ports.h"
#include "core/base/clock.h"
#include "unit/support/random.h"
#include "unit/transport/processes.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GARBAGE_ROUNDS 20
#define PORTS_MAX      16
#define STATE_LISTEN   0x0a
#define TABLES         4

/** A socket of the kernel's tables that takes what strangers send. */
typedef struct open_port {
    struct sockaddr_in address; /**< of IPv4 alone; else zeros */
} open_port;

/* Whether a process has this socket. */
static bool process_has_socket(pid_t process, unsigned long long inode)
{
    char path[64];
    char wanted[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
    snprintf(wanted, sizeof wanted, "socket:[%llu]", inode);
    DIR *directory = opendir(path);
    bool is_found = false;
    for (struct dirent *entry; directory != NULL && !is_found && (entry = readdir(directory)) != NULL;) {
        char target[64] = "";
        if (readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1) > 0) {
            is_found = strcmp(target, wanted) == 0;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return is_found;
}

/* Every port that a process listens at over TCP, and every socket of UDP, of IPv4 and IPv6. */
static uint32_t open_ports(pid_t process, open_port *ports)
{
    static const char *const tables[TABLES] = {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"};
    uint32_t count = 0;
    for (int table = 0; table < TABLES; table++) {
        FILE *file = fopen(tables[table], "r");
        char line[512];
        while (file != NULL && count < PORTS_MAX && fgets(line, sizeof line, file) != NULL) {
            char address[33];
            unsigned int port;
            unsigned int state;
            unsigned long long inode;
            if (sscanf(line, " %*u: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %llu", address, &port,
                       &state, &inode) != 4 ||
                (table < 2 && state != STATE_LISTEN) || !process_has_socket(process, inode)) {
                continue;
            }
            ports[count] = (open_port){0};
            if (table == 0) {
                unsigned int host;
                (void)sscanf(address, "%x", &host);
                ports[count].address = (struct sockaddr_in){
                    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {.s_addr = host}};
            }
            count++;
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    return count;
}

/* Of a pool with one compute node: so many ports at each memory node, of which the first is told, and none elsewhere.
 */
static void expect_ports(const char *transport, size_t of_memory_node, open_port *first)
{
    open_port ports[PORTS_MAX] = {0};
    test_transport = transport;
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    pid_t compute = test_compute_start(COMPUTE_IDLE, pool.nodes, PATIENT_NS);
    CU_ASSERT_TRUE(test_node_serves(&pool, 0));
    CU_ASSERT_EQUAL(open_ports(pool.nodes[1].process, ports), of_memory_node);
    CU_ASSERT_EQUAL(open_ports(pool.nodes[0].process, ports), of_memory_node);
    *first = ports[0];
    CU_ASSERT_EQUAL(open_ports(compute, ports), 0);
    CU_ASSERT_EQUAL(open_ports(getpid(), ports), 0);
    test_process_kill(compute);
    test_pool_stop(&pool);
}

void nobody_listens_at_a_port_on_one_host(void)
{
    static const char *const transports[] = {"ucx", "ucx:data=message", "ucx:data=sysv"};
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        open_port none;
        expect_ports(transports[i], 0, &none);
    }
}

void memory_nodes_alone_listen_and_at_one_port(void)
{
    static const char *const transports[] = {"ucx:port=0", "ucx:data=message,port=0,protect=encrypted"};
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        open_port port;
        expect_ports(transports[i], 1, &port);
        CU_ASSERT_EQUAL(ntohl(port.address.sin_addr.s_addr) >> 24, 127);
    }
}

void garbage_on_any_port_leaves_the_node_serving(void)
{
    test_transport = "ucx:data=message,port=0";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    dmg_random random = {dmg_test_seed()};
    open_port ports[PORTS_MAX];
    uint32_t count = open_ports(pool.nodes[0].process, ports);
    CU_ASSERT_EQUAL(count, 1);
    for (uint32_t i = 0; i < count; i++) {
        for (int round = 0; round < GARBAGE_ROUNDS; round++) {
            int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            CU_ASSERT_EQUAL_FATAL(connect(stranger, (struct sockaddr *)&ports[i].address, sizeof ports[i].address), 0);
            uint64_t garbage[512];
            for (size_t j = 0; j < sizeof garbage / sizeof garbage[0]; j++) {
                garbage[j] = dmg_random_next(&random);
            }
            (void)!send(stranger, garbage, dmg_random_next(&random) % sizeof garbage, MSG_NOSIGNAL);
            CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
            close(stranger);
        }
    }
    test_pool_stop(&pool);
}
