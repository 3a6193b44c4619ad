/*
 * Link profiles: text files, found by name in a few directories.
 */
#include "core/base/error.h"
#include "transport/link.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX          ".link"
#define BESIDE_PROGRAM  "../share/dmgraph/links"
#define DIRECTORIES_MAX 16
#define PROFILES_MAX    256
#define LINES_MAX       1000

/* ---- one file ---- */

typedef struct reading {
    const char *path;
    unsigned line;
    dmg_link_profile *profile;
} reading;

static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

static dmg_status wrong(const reading *from, const char *what, const char *text)
{
    return dmg_error(DMG_ERR_FORMAT, "%s:%u: %s: '%.80s'", from->path, from->line, what, text);
}

static dmg_status take_text(const reading *from, const char *value, char *to, size_t capacity)
{
    if (strlen(value) >= capacity) {
        return wrong(from, "the text is too long", value);
    }
    memcpy(to, value, strlen(value) + 1);
    return DMG_OK;
}

static bool parse_number(const char *text, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && isfinite(*number);
}

static dmg_status take_cell(reading *from, dmg_link_cell cell, const char *value, const char *provenance)
{
    dmg_link_profile *profile = from->profile;
    bool is_none = strcmp(value, "none") == 0;
    double number = 0;
    if (profile->is_given[cell]) {
        return wrong(from, "this cell is given twice", dmg_link_cell_name(cell));
    }
    if (!is_none && (!parse_number(value, &number) || number <= 0)) {
        return wrong(from, "expected a number above 0, or 'none'", value);
    }
    if (!provenance || !*provenance) {
        return wrong(from, "where does this number come from? Write it behind '|'", dmg_link_cell_name(cell));
    }
    if (is_none && cell <= DMG_LINK_MESSAGE_LATENCY && cell != DMG_LINK_ATOMIC_LATENCY) {
        return wrong(from, "only atomics may be 'none' among the latencies", dmg_link_cell_name(cell));
    }
    profile->is_given[cell] = true;
    profile->settings.cells[cell] = number;
    return take_text(from, provenance, profile->provenance[cell], sizeof profile->provenance[cell]);
}

static dmg_status take_value(reading *from, const char *key, char *value, const char *provenance)
{
    dmg_link_profile *profile = from->profile;
    if (strcmp(key, "title") == 0) {
        return take_text(from, value, profile->title, sizeof profile->title);
    }
    if (strcmp(key, "coherence") == 0) {
        return take_text(from, value, profile->coherence, sizeof profile->coherence);
    }
    if (strcmp(key, "line_bytes") == 0) {
        double bytes;
        if (!parse_number(value, &bytes) || bytes < 1 || bytes > UINT16_MAX || bytes != floor(bytes)) {
            return wrong(from, "expected a number of bytes", value);
        }
        profile->settings.line_bytes = (uint32_t)bytes;
        return DMG_OK;
    }
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        if (strcmp(key, dmg_link_cell_name((dmg_link_cell)cell)) == 0) {
            return take_cell(from, (dmg_link_cell)cell, value, provenance);
        }
    }
    return wrong(from, "there is no such key", key);
}

static dmg_status take_line(reading *from, char *line)
{
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] != '\n' && length + 1 >= 2 * DMG_LINK_TEXT_BYTES) {
        return wrong(from, "the line is too long", line);
    }
    line = trim(line);
    if (*line == '\0' || *line == '#') {
        return DMG_OK;
    }
    char *equals = strchr(line, '=');
    if (!equals) {
        return wrong(from, "expected KEY = VALUE | PROVENANCE", line);
    }
    *equals = '\0';
    char *value = equals + 1;
    char *bar = strchr(value, '|');
    if (bar) {
        *bar = '\0';
    }
    return take_value(from, trim(line), trim(value), bar ? trim(bar + 1) : NULL);
}

static dmg_status check_complete(const reading *from)
{
    static const dmg_link_cell needed[] = {DMG_LINK_READ_LATENCY, DMG_LINK_WRITE_LATENCY, DMG_LINK_ATOMIC_LATENCY,
                                           DMG_LINK_MESSAGE_LATENCY};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (!from->profile->is_given[needed[i]]) {
            return dmg_error(DMG_ERR_FORMAT, "%s: %s is missing", from->path, dmg_link_cell_name(needed[i]));
        }
    }
    dmg_status status = dmg_link_settings_check(&from->profile->settings);
    return status == DMG_OK ? DMG_OK : dmg_error_prefix(DMG_ERR_FORMAT, "%s", from->path);
}

static dmg_status read_file(const char *path, dmg_link_profile *profile)
{
    *profile = (dmg_link_profile){.settings = {.line_bytes = 1}};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    if (length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0) {
        length -= strlen(SUFFIX);
    }
    if (length >= sizeof profile->settings.name || strlen(path) >= sizeof profile->path) {
        return dmg_error(DMG_ERR_ARGUMENT, "the path of the link profile %s is too long", path);
    }
    memcpy(profile->settings.name, name, length);
    snprintf(profile->path, sizeof profile->path, "%s", path);
    FILE *file = fopen(path, "re");
    if (!file) {
        int failed = errno;
        return dmg_error_errno(failed == ENOENT ? DMG_ERR_NOT_FOUND : DMG_ERR_IO, failed, "opening the link profile %s",
                               path);
    }
    reading from = {.path = path, .profile = profile};
    char line[2 * DMG_LINK_TEXT_BYTES];
    dmg_status status = DMG_OK;
    while (status == DMG_OK && fgets(line, sizeof line, file)) {
        from.line++;
        status = from.line <= LINES_MAX ? take_line(&from, line)
                                        : dmg_error(DMG_ERR_FORMAT, "%s is too long for a link profile", path);
    }
    if (status == DMG_OK && ferror(file)) {
        status = dmg_error(DMG_ERR_IO, "reading the link profile %s failed", path);
    }
    fclose(file);
    return status == DMG_OK ? check_complete(&from) : status;
}

/* ---- directories ---- */

typedef struct directories {
    uint32_t count;
    char paths[DIRECTORIES_MAX][PATH_MAX];
} directories;

static directories *find_directories(void)
{
    directories *found = calloc(1, sizeof *found);
    if (!found) {
        return NULL;
    }
    const char *rest = getenv("DMGRAPH_LINKS");
    while (rest && *rest && found->count < DIRECTORIES_MAX - 1) {
        size_t length = strcspn(rest, ":");
        if (length > 0 && length < PATH_MAX) {
            snprintf(found->paths[found->count++], PATH_MAX, "%.*s", (int)length, rest);
        }
        rest += length + (rest[length] == ':');
    }
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        char *slash = strrchr(program, '/');
        if (slash && (size_t)(slash - program) + sizeof BESIDE_PROGRAM + 1 < PATH_MAX) {
            snprintf(slash + 1, sizeof program - (size_t)(slash + 1 - program), "%s", BESIDE_PROGRAM);
            memcpy(found->paths[found->count++], program, sizeof program);
        }
    }
    return found;
}

static bool has_suffix(const char *name)
{
    size_t length = strlen(name);
    return length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

static bool is_listed(const dmg_link_profile *profiles, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(profiles[i].settings.name, name) == 0) {
            return true;
        }
    }
    return false;
}

static dmg_status list_directory(const char *directory, dmg_link_profile *profiles, size_t *count)
{
    DIR *folder = opendir(directory);
    if (!folder) {
        return DMG_OK; /* none of its profiles, then */
    }
    dmg_status status = DMG_OK;
    size_t before = *count;
    const struct dirent *item;
    while (status == DMG_OK && (item = readdir(folder)) && *count < PROFILES_MAX) {
        char path[PATH_MAX];
        if (!has_suffix(item->d_name) ||
            snprintf(path, sizeof path, "%s/%s", directory, item->d_name) >= (int)sizeof path) {
            continue;
        }
        status = read_file(path, &profiles[*count]);
        *count += status == DMG_OK && !is_listed(profiles, before, profiles[*count].settings.name);
    }
    closedir(folder);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const dmg_link_profile *)a)->settings.name, ((const dmg_link_profile *)b)->settings.name);
}

dmg_status dmg_link_profiles_list(dmg_link_profile **profiles, size_t *count)
{
    *count = 0;
    *profiles = calloc(PROFILES_MAX, sizeof **profiles);
    directories *searched = find_directories();
    dmg_status status = *profiles && searched ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "no memory to list link profiles");
    for (uint32_t i = 0; status == DMG_OK && i < searched->count; i++) {
        status = list_directory(searched->paths[i], *profiles, count);
    }
    free(searched);
    if (status != DMG_OK) {
        free(*profiles);
        *profiles = NULL;
        return status;
    }
    qsort(*profiles, *count, sizeof **profiles, compare_names);
    return DMG_OK;
}

static dmg_status unknown(const char *name)
{
    dmg_link_profile *profiles;
    size_t count;
    dmg_status status = dmg_link_profiles_list(&profiles, &count);
    if (status != DMG_OK) {
        return status;
    }
    char known[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof known; i++) {
        int length = snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", profiles[i].settings.name);
        used += length > 0 ? (size_t)length : 0;
    }
    free(profiles);
    return count > 0 ? dmg_error(DMG_ERR_NOT_FOUND, "there is no link profile '%s'; there are %s", name, known)
                     : dmg_error(DMG_ERR_NOT_FOUND,
                                 "there is no link profile '%s', nor any other: set DMGRAPH_LINKS to their folder, or "
                                 "name a file",
                                 name);
}

dmg_status dmg_link_profile_load(const char *name_or_path, dmg_link_profile *profile)
{
    if (strchr(name_or_path, '/') || has_suffix(name_or_path)) {
        return read_file(name_or_path, profile);
    }
    directories *searched = find_directories();
    if (!searched) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to look for link profiles");
    }
    dmg_status status = DMG_ERR_NOT_FOUND;
    for (uint32_t i = 0; i < searched->count && status == DMG_ERR_NOT_FOUND; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s" SUFFIX, searched->paths[i], name_or_path) < (int)sizeof path &&
            access(path, F_OK) == 0) {
            status = read_file(path, profile);
        }
    }
    free(searched);
    return status == DMG_ERR_NOT_FOUND ? unknown(name_or_path) : status;
}
