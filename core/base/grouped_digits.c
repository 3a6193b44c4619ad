#include "core/base/grouped_digits.h"

#include <inttypes.h>
#include <stdio.h>

dmg_grouped_digits dmg_group_digits(uint64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    dmg_grouped_digits result;
    char *to = result.text;
    for (int index = 0; index < length; index++) {
        if (index > 0 && (length - index) % 3 == 0) {
            *to++ = ',';
        }
        *to++ = digits[index];
    }
    *to = '\0';
    return result;
}
