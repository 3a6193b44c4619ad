#include "cli/base/exit_code.h"

#include "cli/base/text.h"
#include "core/base/error.h"
#include "core/base/memory_room.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int dmg_exit_code_of(dmg_status status)
{
    switch (status) {
    case DMG_OK:
        return DMG_EXIT_OK;
    case DMG_ERR_ARGUMENT:
    case DMG_ERR_UNSUPPORTED:
    case DMG_ERR_NOT_FOUND:
    case DMG_ERR_EXISTS:
    case DMG_ERR_DENIED:
        return DMG_EXIT_USAGE;
    case DMG_ERR_FORMAT:
    case DMG_ERR_CORRUPT:
        return DMG_EXIT_INPUT;
    case DMG_ERR_MEMORY:
    case DMG_ERR_LIMIT:
        return DMG_EXIT_LIMIT;
    case DMG_ERR_PEER:
        return DMG_EXIT_NODE;
    case DMG_ERR_VERIFY:
        return DMG_EXIT_VERIFY;
    case DMG_ERR_IO:
        return DMG_EXIT_IO;
    case DMG_ERR_PROTOCOL:
    case DMG_ERR_CANCELLED:
    case DMG_ERR_INTERNAL:
    case DMG_STATUS_COUNT:
        break;
    }
    return DMG_EXIT_INTERNAL;
}

/* Memory that a shell withholds looks like any other that is missing; libraries name no reason at all. */
static void print_address_space_limit(FILE *to, const char *sentence)
{
    uint64_t limit;
    (void)dmg_address_space_left(&limit);
    if (limit != UINT64_MAX && !strstr(sentence, "ulimit")) {
        fprintf(to, " (a process may map %s here: `ulimit -v`)", dmg_text_bytes(limit).text);
    }
}

int dmg_exit_with_error(dmg_status status)
{
    if (status == DMG_ERR_IO && dmg_error_number() == EPIPE) {
        /* Who reads the output has what was wanted, as in `| head`: no news, and the code of other programs. */
        return DMG_EXIT_SIGNAL + SIGPIPE;
    }
    const char *sentence = dmg_error_message();
    fprintf(stderr, "dmgraph: %s", *sentence ? sentence : dmg_status_name(status));
    if (status == DMG_ERR_MEMORY) {
        print_address_space_limit(stderr, sentence);
    }
    fputc('\n', stderr);
    return dmg_exit_code_of(status);
}
