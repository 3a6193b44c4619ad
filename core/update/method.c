#include "core/update/method.h"

const char *dmg_update_method_name(dmg_update_method method)
{
    static const char *const names[DMG_UPDATE_METHODS] = {[DMG_UPDATE_AUTO] = "auto",
                                                          [DMG_UPDATE_DIRECT] = "direct",
                                                          [DMG_UPDATE_VALRD_NODE] = "valrd-node",
                                                          [DMG_UPDATE_VALRD_OWNER] = "valrd-owner",
                                                          [DMG_UPDATE_REFRD] = "refrd"};
    return names[method];
}
