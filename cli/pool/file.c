#include "cli/pool/file.h"

#include "cli/pool/private_file.h"
#include "core/base/error.h"
#include "core/pool/token.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL_FILE_VERSION 1
#define FILE_NAME_BYTES   (DMG_POOL_NAME_BYTES + 32)

/* ---- names and the folder ---- */

dmg_status dmg_pool_name_check(const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strnlen(name, DMG_POOL_NAME_BYTES);
    if (length == 0 || length == DMG_POOL_NAME_BYTES || name[0] == '.' || strspn(name, legal) != length) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "'%.64s' cannot be a pool's name: that has 1 to %d letters, digits, dots, lines and dashes, "
                         "and begins with no dot",
                         name, DMG_POOL_NAME_BYTES - 1);
    }
    return DMG_OK;
}

static void folder_path(char *path, size_t capacity)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && runtime[0] == '/') {
        snprintf(path, capacity, "%s/dmgraph", runtime);
    } else {
        snprintf(path, capacity, "/tmp/dmgraph-%u", (unsigned int)geteuid());
    }
}

void dmg_pool_folder_path(char *path, size_t capacity)
{
    folder_path(path, capacity);
}

void dmg_pool_path(const char *name, const char *extension, char *path, size_t capacity)
{
    char folder[PATH_MAX];
    folder_path(folder, sizeof folder);
    if (snprintf(path, capacity, "%s/%s%s%s", folder, name, extension ? "." : "", extension ? extension : "") < 0) {
        path[0] = '\0';
    }
}

dmg_status dmg_pool_folder_open(bool may_make, int *folder)
{
    char path[PATH_MAX];
    folder_path(path, sizeof path);
    if (may_make && mkdir(path, 0700) != 0 && errno != EEXIST) {
        return dmg_error_errno(DMG_ERR_IO, errno, "making the folder of pools %s", path);
    }
    return dmg_pool_folder_open_path(path, folder);
}

dmg_status dmg_pool_folder_open_path(const char *path, int *folder)
{
    *folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*folder < 0) {
        return errno == ENOENT ? dmg_error(DMG_ERR_NOT_FOUND, "there is no pool: %s does not exist", path)
                               : dmg_error_errno(DMG_ERR_IO, errno, "opening the folder of pools %s", path);
    }
    struct stat facts;
    dmg_status status = fstat(*folder, &facts) == 0 ? dmg_private_check(&facts, path)
                                                    : dmg_error_errno(DMG_ERR_IO, errno, "looking at %s", path);
    if (status != DMG_OK) {
        close(*folder);
        *folder = -1;
    }
    return status;
}

/* ---- contents ---- */

static dmg_status wrong(const char *what)
{
    return dmg_error(DMG_ERR_CORRUPT, "it is no description of a pool: %s", what);
}

static dmg_status take_text(const char *text, const char *what, char *to, size_t capacity)
{
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length >= capacity) {
        return wrong(what);
    }
    memcpy(to, text, length + 1);
    return DMG_OK;
}

static dmg_status node_from_json(json_t *object, dmg_pool_node *node)
{
    json_int_t pid = 0, start_time = 0, bytes = 0;
    const char *address = NULL;
    if (json_unpack(object, "{s:I, s:I, s:I, s:s !}", "pid", &pid, "start_time", &start_time, "segment_bytes", &bytes,
                    "address", &address) != 0) {
        return wrong("a node lacks its process, segment or address");
    }
    /* A pid of 0 or below would name a whole group of processes, 1 is init. */
    if (pid <= 1 || pid > INT_MAX || start_time <= 0 || bytes <= 0) {
        return wrong("a node's process or segment is impossible");
    }
    node->process = (dmg_process){.pid = (int)pid, .start_time = (uint64_t)start_time};
    node->segment_bytes = (uint64_t)bytes;
    return take_text(address, "a node's address is too long", node->address, sizeof node->address);
}

dmg_status dmg_pool_file_from_json(json_t *object, dmg_pool_file *pool)
{
    memset(pool, 0, sizeof *pool);
    int version = 0;
    json_int_t created_s = 0, peer_timeout_ns = 0;
    const char *name = NULL, *transport = NULL, *token = NULL;
    json_t *nodes = NULL;
    if (json_unpack(object, "{s:i, s:s, s:s, s:I, s:I, s:s, s:o !}", "dmgraph_pool", &version, "name", &name,
                    "transport", &transport, "created", &created_s, "peer_timeout_ns", &peer_timeout_ns, "token",
                    &token, "nodes", &nodes) != 0) {
        return wrong("something is missing, or too much");
    }
    if (version != POOL_FILE_VERSION) {
        return wrong("it is of another version of dmgraph");
    }
    size_t count = json_is_array(nodes) ? json_array_size(nodes) : 0;
    if (count < 1 || count > DMG_MEMORY_NODES_MAX || created_s < 0 || peer_timeout_ns <= 0) {
        return wrong("a number is out of range");
    }
    dmg_status status = dmg_pool_name_check(name) == DMG_OK ? DMG_OK : wrong("its name is impossible");
    if (status == DMG_OK && dmg_token_read(token, pool->token) != DMG_OK) {
        status = wrong("its token is no token");
    }
    if (status == DMG_OK) {
        status = take_text(name, "its name is too long", pool->name, sizeof pool->name);
    }
    if (status == DMG_OK) {
        status = take_text(transport, "its transport is too long", pool->transport, sizeof pool->transport);
    }
    pool->created_s = (uint64_t)created_s;
    pool->peer_timeout_ns = (uint64_t)peer_timeout_ns;
    for (size_t index = 0; index < count && status == DMG_OK; index++) {
        status = node_from_json(json_array_get(nodes, index), &pool->nodes[index]);
        pool->node_count++;
    }
    return status;
}

json_t *dmg_pool_file_json(const dmg_pool_file *pool)
{
    char token[DMG_TOKEN_TEXT_BYTES];
    dmg_token_write(pool->token, token);
    json_t *nodes = json_array();
    for (uint32_t index = 0; index < pool->node_count; index++) {
        const dmg_pool_node *node = &pool->nodes[index];
        json_array_append_new(nodes, json_pack("{s:I, s:I, s:I, s:s}", "pid", (json_int_t)node->process.pid,
                                               "start_time", (json_int_t)node->process.start_time, "segment_bytes",
                                               (json_int_t)node->segment_bytes, "address", node->address));
    }
    return json_pack("{s:i, s:s, s:s, s:I, s:I, s:s, s:o}", "dmgraph_pool", POOL_FILE_VERSION, "name", pool->name,
                     "transport", pool->transport, "created", (json_int_t)pool->created_s, "peer_timeout_ns",
                     (json_int_t)pool->peer_timeout_ns, "token", token, "nodes", nodes);
}

/* ---- files ---- */

static void file_name(const char *name, const char *extension, char text[FILE_NAME_BYTES])
{
    snprintf(text, FILE_NAME_BYTES, "%.*s.%s", DMG_POOL_NAME_BYTES - 1, name, extension);
}

bool dmg_pool_file_is(const char *file, char name[DMG_POOL_NAME_BYTES])
{
    static const char end[] = ".pool";
    size_t length = strlen(file);
    if (length < sizeof end || length - (sizeof end - 1) >= DMG_POOL_NAME_BYTES ||
        strcmp(file + length - (sizeof end - 1), end) != 0) {
        return false;
    }
    length -= sizeof end - 1;
    memcpy(name, file, length);
    name[length] = '\0';
    return true;
}

dmg_status dmg_pool_file_write(int folder, const dmg_pool_file *pool)
{
    char name[FILE_NAME_BYTES];
    char path[PATH_MAX];
    file_name(pool->name, "pool", name);
    dmg_pool_path(pool->name, "pool", path, sizeof path);
    json_t *object = dmg_pool_file_json(pool);
    char *text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
    json_decref(object);
    if (!text) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s: the pool cannot be described", path);
    }
    dmg_status status = dmg_private_file_write(folder, name, path, text, strlen(text));
    free(text);
    return status == DMG_ERR_EXISTS ? dmg_error(status, "there is a pool '%s' already", pool->name) : status;
}

static dmg_status read_text(int folder, const char *name, const char *path, char **text, size_t *bytes)
{
    char file[FILE_NAME_BYTES];
    file_name(name, "pool", file);
    *text = malloc(DMG_POOL_FILE_BYTES_MAX);
    if (!*text) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to read %s", path);
    }
    dmg_status status = dmg_private_file_read(folder, file, path, *text, DMG_POOL_FILE_BYTES_MAX, bytes);
    if (status == DMG_ERR_NOT_FOUND) {
        return dmg_error(status, "there is no pool '%s' (%s does not exist)", name, path);
    }
    return status == DMG_ERR_CORRUPT ? dmg_error(status, "%s: it is no description of a pool: it is too long", path)
                                     : status;
}

dmg_status dmg_pool_admin_write(int folder, const char *name, const uint8_t admin[DMG_SECRET_BYTES])
{
    char file[FILE_NAME_BYTES];
    char path[PATH_MAX];
    char text[DMG_SECRET_TEXT_BYTES];
    file_name(name, "admin", file);
    dmg_pool_path(name, "admin", path, sizeof path);
    dmg_secret_write(admin, text);
    unlinkat(folder, file, 0);
    return dmg_private_file_write(folder, file, path, text, strlen(text));
}

dmg_status dmg_pool_admin_find(const char *name, uint8_t admin[DMG_SECRET_BYTES])
{
    int folder = -1;
    char file[FILE_NAME_BYTES];
    char path[PATH_MAX];
    char text[DMG_SECRET_TEXT_BYTES];
    size_t bytes = 0;
    dmg_status status = dmg_pool_name_check(name);
    if (status == DMG_OK) {
        status = dmg_pool_folder_open(false, &folder);
    }
    if (status == DMG_OK) {
        file_name(name, "admin", file);
        dmg_pool_path(name, "admin", path, sizeof path);
        status = dmg_private_file_read(folder, file, path, text, sizeof text - 1, &bytes);
        close(folder);
    }
    if (status == DMG_ERR_NOT_FOUND) {
        return dmg_error(status, "there is no admin secret of the pool '%s' here: its starter has it", name);
    }
    if (status == DMG_OK) {
        text[bytes] = '\0';
        status =
            dmg_secret_read(text, admin) == DMG_OK ? DMG_OK : dmg_error(DMG_ERR_CORRUPT, "%s is no admin secret", path);
    }
    return status;
}

dmg_status dmg_pool_file_read(int folder, const char *name, dmg_pool_file *pool)
{
    dmg_status status = dmg_pool_name_check(name);
    if (status != DMG_OK) {
        return status;
    }
    char path[PATH_MAX];
    char *text = NULL;
    size_t bytes = 0;
    dmg_pool_path(name, "pool", path, sizeof path);
    status = read_text(folder, name, path, &text, &bytes);
    if (status == DMG_OK) {
        json_error_t reason;
        json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &reason);
        status = object ? dmg_pool_file_from_json(object, pool) : wrong("it is no JSON");
        if (status == DMG_OK && strcmp(pool->name, name) != 0) {
            status = wrong("it has another pool's name");
        }
        json_decref(object);
        if (status != DMG_OK) {
            dmg_error_prefix(status, "%s", path);
        }
    }
    free(text);
    return status;
}

dmg_status dmg_pool_file_find(const char *name, dmg_pool_file *pool)
{
    int folder = -1;
    dmg_status status = dmg_pool_name_check(name);
    if (status == DMG_OK) {
        status = dmg_pool_folder_open(false, &folder);
    }
    if (status == DMG_ERR_NOT_FOUND) {
        return dmg_error(status, "there is no pool '%s'; 'dmgraph pool start' makes one", name);
    }
    if (status == DMG_OK) {
        status = dmg_pool_file_read(folder, name, pool);
        close(folder);
    }
    return status;
}

dmg_status dmg_pool_log_open(int folder, const char *name, int *log)
{
    char text[FILE_NAME_BYTES];
    file_name(name, "log", text);
    *log = openat(folder, text, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *log >= 0 ? DMG_OK : dmg_error_errno(DMG_ERR_IO, errno, "opening the log of the pool '%s'", name);
}

void dmg_pool_log_remove(int folder, const char *name)
{
    char text[FILE_NAME_BYTES];
    file_name(name, "log", text);
    unlinkat(folder, text, 0);
}

dmg_status dmg_pool_ends_open(int folder, const char *name, bool may_make, int *ends)
{
    char text[FILE_NAME_BYTES];
    file_name(name, "ends", text);
    int way = may_make ? O_WRONLY | O_CREAT | O_APPEND : O_RDONLY | O_NONBLOCK;
    *ends = openat(folder, text, way | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *ends >= 0 ? DMG_OK : dmg_error_errno(DMG_ERR_IO, errno, "opening the ends of the pool '%s'", name);
}

void dmg_pool_ends_remove(int folder, const char *name)
{
    char text[FILE_NAME_BYTES];
    file_name(name, "ends", text);
    unlinkat(folder, text, 0);
}

dmg_status dmg_pool_file_remove(int folder, const char *name)
{
    char text[FILE_NAME_BYTES];
    dmg_pool_log_remove(folder, name);
    file_name(name, "admin", text);
    unlinkat(folder, text, 0);
    file_name(name, "pool", text);
    if (unlinkat(folder, text, 0) != 0 && errno != ENOENT) {
        char path[PATH_MAX];
        dmg_pool_path(name, "pool", path, sizeof path);
        return dmg_error_errno(DMG_ERR_IO, errno, "removing %s", path);
    }
    /* Behind it, since the keeper makes that file as long as there is a pool. */
    dmg_pool_ends_remove(folder, name);
    return DMG_OK;
}

uint32_t dmg_pool_alive_count(const dmg_pool_file *pool)
{
    uint32_t alive = 0;
    for (uint32_t node = 0; node < pool->node_count; node++) {
        alive += dmg_process_is_alive(&pool->nodes[node].process);
    }
    return alive;
}
