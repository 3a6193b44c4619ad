#include "transport/link/page.h"

#include "core/base/error.h"
#include "core/base/ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char making[] = "making the clocks of an emulated link";

static dmg_status map_file(int descriptor, dmg_link_page **page)
{
    void *mapped = mmap(NULL, sizeof **page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) {
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "mapping the clocks of an emulated link");
    }
    *page = mapped;
    return DMG_OK;
}

dmg_status dmg_link_page_create(dmg_link_offer *offer)
{
    *offer = (dmg_link_offer){.pid = getpid(), .descriptor = -1};
    if (getrandom(offer->nonce, sizeof offer->nonce, 0) != (ssize_t)sizeof offer->nonce) {
        return dmg_error_errno(DMG_ERR_IO, errno, "%s: the system gives no random numbers", making);
    }
    int descriptor = memfd_create("dmgraph-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "%s", making);
    }
    /* Nobody can take the page away from under another. */
    dmg_link_page *page = NULL;
    dmg_status status = ftruncate(descriptor, sizeof *page) != 0 ||
                                fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0
                            ? dmg_error_errno(DMG_ERR_MEMORY, errno, "%s", making)
                            : map_file(descriptor, &page);
    if (status != DMG_OK) {
        close(descriptor);
        return status;
    }
    page->epoch = dmg_ticks(dmg_ticks_are_cycles());
    memcpy(page->nonce, offer->nonce, sizeof page->nonce);
    dmg_link_page_unmap(page);
    offer->descriptor = descriptor;
    return DMG_OK;
}

dmg_status dmg_link_page_map(const dmg_link_offer *offer, dmg_link_page **page)
{
    *page = NULL;
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)offer->pid, (long long)offer->descriptor);
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    bool is_file = descriptor >= 0 && fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
                   about.st_size == (off_t)sizeof **page;
    dmg_status status = is_file ? map_file(descriptor, page) : DMG_ERR_UNSUPPORTED;
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (status == DMG_OK && memcmp((*page)->nonce, offer->nonce, sizeof offer->nonce) != 0) {
        dmg_link_page_unmap(*page);
        *page = NULL;
        status = DMG_ERR_UNSUPPORTED;
    }
    return status == DMG_ERR_UNSUPPORTED
               ? dmg_error(DMG_ERR_UNSUPPORTED,
                           "its clocks cannot be mapped: an emulated link needs memory nodes of this user on this "
                           "machine; real links between machines are measured as they are")
               : status;
}

dmg_status dmg_link_page_map_own(dmg_link_page **page)
{
    void *mapped = mmap(NULL, sizeof **page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        *page = NULL;
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "mapping the clocks of an emulated link");
    }
    *page = mapped;
    (*page)->epoch = dmg_ticks(dmg_ticks_are_cycles());
    return DMG_OK;
}

void dmg_link_page_unmap(dmg_link_page *page)
{
    if (page) {
        munmap(page, sizeof *page);
    }
}
