#include "cli/launcher/work_step.h"

#include "cli/base/exit_code.h"
#include "cli/launcher/launcher.h"

#include <stdio.h>
#include <unistd.h>

int dmg_work_step_run(dmg_status (*step)(void *context), void *context)
{
    dmg_launcher *launcher = NULL;
    dmg_status status = dmg_launcher_create(&launcher);
    if (status == DMG_OK) {
        status = dmg_launcher_call(launcher, step, context);
    }
    if (launcher && dmg_launcher_signal(launcher)) {
        fprintf(stderr, "dmgraph: %s\n", dmg_error_message());
        _exit(DMG_EXIT_SIGNAL + dmg_launcher_signal(launcher));
    }
    int code = status == DMG_OK ? DMG_EXIT_OK : dmg_exit_with_error(status);
    dmg_launcher_destroy(launcher);
    return code;
}
