#include "transport/shared_page.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct shared_file {
    uint8_t nonce[DMG_SHARED_PAGE_NONCE_BYTES];
    _Alignas(64) uint8_t shared[DMG_SHARED_PAGE_BYTES];
} shared_file;

static const char making[] = "making a page for all clients";

static shared_file *file_of(void *page)
{
    return (shared_file *)(void *)((char *)page - offsetof(shared_file, shared));
}

static dmg_status map_file(int descriptor, int flags, void **page)
{
    shared_file *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    *page = mapped == MAP_FAILED ? NULL : mapped->shared;
    return *page ? DMG_OK : dmg_error_errno(DMG_ERR_MEMORY, errno, "mapping a memory node's page for all clients");
}

dmg_status dmg_shared_page_create(dmg_shared_page_offer *offer)
{
    *offer = (dmg_shared_page_offer){.pid = getpid(), .descriptor = -1};
    if (getrandom(offer->nonce, sizeof offer->nonce, 0) != (ssize_t)sizeof offer->nonce) {
        return dmg_error_errno(DMG_ERR_IO, errno, "%s: the system gives no random numbers", making);
    }
    int descriptor = memfd_create("dmgraph-shared-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "%s", making);
    }
    /* Nobody can take the page away from under another. */
    void *page = NULL;
    dmg_status status = ftruncate(descriptor, sizeof(shared_file)) != 0 ||
                                fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0
                            ? dmg_error_errno(DMG_ERR_MEMORY, errno, "%s", making)
                            : map_file(descriptor, MAP_SHARED, &page);
    if (status != DMG_OK) {
        close(descriptor);
        return status;
    }
    memcpy(file_of(page)->nonce, offer->nonce, sizeof offer->nonce);
    dmg_shared_page_unmap(page);
    offer->descriptor = descriptor;
    return DMG_OK;
}

dmg_status dmg_shared_page_map(const dmg_shared_page_offer *offer, void **page)
{
    *page = NULL;
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)offer->pid, (long long)offer->descriptor);
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    bool is_file = descriptor >= 0 && fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
                   about.st_size == (off_t)sizeof(shared_file);
    dmg_status status = is_file ? map_file(descriptor, MAP_SHARED, page) : DMG_ERR_UNSUPPORTED;
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (status == DMG_OK && memcmp(file_of(*page)->nonce, offer->nonce, sizeof offer->nonce) != 0) {
        dmg_shared_page_unmap(*page);
        *page = NULL;
        status = DMG_ERR_UNSUPPORTED;
    }
    return status == DMG_ERR_UNSUPPORTED
               ? dmg_error(DMG_ERR_UNSUPPORTED, "its memory cannot be mapped: it is not a process of this user on this "
                                                "machine")
               : status;
}

dmg_status dmg_shared_page_map_own(void **page)
{
    return map_file(-1, MAP_PRIVATE | MAP_ANONYMOUS, page);
}

void dmg_shared_page_unmap(void *page)
{
    if (page) {
        munmap(file_of(page), sizeof(shared_file));
    }
}
