#include "cli/base/progress.h"

#include "cli/base/text.h"
#include "core/base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRAW_NS_MIN  UINT64_C(100000000)
#define FIRST_NS_MIN UINT64_C(300000000) /* short steps show nothing */
#define BAR_WIDTH    30

struct dmg_progress_bar {
    pthread_mutex_t mutex;
    uint64_t created_ns;
    uint64_t drawn_ns;
    bool is_shown;
};

dmg_progress_bar *dmg_progress_bar_create(bool is_wanted)
{
    if (!is_wanted || !isatty(STDERR_FILENO)) {
        return NULL;
    }
    dmg_progress_bar *bar = calloc(1, sizeof *bar);
    if (bar) {
        pthread_mutex_init(&bar->mutex, NULL);
        bar->created_ns = dmg_now_ns();
    }
    return bar;
}

static void draw(const char *step, uint64_t done, uint64_t total)
{
    if (total == 0) {
        fprintf(stderr, "\r\033[K%-24s %s", step, dmg_text_count(done).text);
        return;
    }
    double share = done < total ? (double)done / (double)total : 1;
    int filled = (int)(share * BAR_WIDTH);
    char bar[BAR_WIDTH + 1];
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%-24s [%s] %3.0f %%", step, bar, share * 100);
}

void dmg_progress_bar_show(void *context, const char *step, uint64_t done, uint64_t total)
{
    dmg_progress_bar *bar = context;
    if (!bar) {
        return;
    }
    pthread_mutex_lock(&bar->mutex);
    uint64_t now = dmg_now_ns();
    if (now - bar->created_ns >= FIRST_NS_MIN && now - bar->drawn_ns >= DRAW_NS_MIN) {
        bar->drawn_ns = now;
        bar->is_shown = true;
        draw(step, done, total);
    }
    pthread_mutex_unlock(&bar->mutex);
}

void dmg_progress_bar_clear(dmg_progress_bar *bar)
{
    if (!bar) {
        return;
    }
    pthread_mutex_lock(&bar->mutex);
    if (bar->is_shown) {
        fputs("\r\033[K", stderr);
        bar->is_shown = false;
    }
    bar->drawn_ns = dmg_now_ns();
    pthread_mutex_unlock(&bar->mutex);
}

void dmg_progress_bar_destroy(dmg_progress_bar *bar)
{
    if (bar) {
        dmg_progress_bar_clear(bar);
        pthread_mutex_destroy(&bar->mutex);
        free(bar);
    }
}
