/* loader.c: see loader.h. The shared object is looked for beside the file this code is in (the
 * command, or libmnp.so), in the library folder that goes with it, and in the build folder above
 * (for tests); last by the system's own search. */
#define _GNU_SOURCE
#include "backend/cuda/loader.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };
static const char file_name[] = "libmnp_cuda.so";

/* Cuts the last component off; false when there is none. */
static bool to_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = '\0';
    return true;
}

static bool own_folder(char out[PATH_SIZE]) {
    static const char anchor; /* an address inside this file's object */
    Dl_info info;
    if (dladdr(&anchor, &info) && info.dli_fname && strchr(info.dli_fname, '/')) {
        snprintf(out, PATH_SIZE, "%s", info.dli_fname);
        return to_folder(out);
    }
    ssize_t length = readlink("/proc/self/exe", out, PATH_SIZE - 1);
    if (length <= 0) return false;
    out[length] = '\0';
    return to_folder(out);
}

static void *open_library(char tried[PATH_SIZE], char why[256]) {
    static const char *const places[] = {"", "/../lib", "/..", "/../.."};
    char folder[PATH_SIZE], path[PATH_SIZE + 64];
    why[0] = '\0';
    if (!own_folder(folder)) snprintf(folder, sizeof folder, ".");
    snprintf(tried, PATH_SIZE, "%s", folder);
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, places[k], file_name);
        if (access(path, R_OK) != 0) continue;
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!handle) snprintf(why, 256, "%.255s", dlerror());
        return handle;
    }
    return dlopen(file_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static mnp_status find_api(env *e, const cuda_api **api) {
    char folder[PATH_SIZE], why[256];
    void *handle = open_library(folder, why);
    if (!handle && why[0])
        return env_fail(e, MNP_EUNSUPPORTED, "CUDA cannot be used: %s does not load (%s)",
                        file_name, why);
    if (!handle)
        return env_fail(e, MNP_EUNSUPPORTED,
                        "CUDA cannot be used: there is no %s in %.300s; it is built where nvcc is "
                        "installed",
                        file_name, folder);
    cuda_api_entry entry;
    void *symbol = dlsym(handle, CUDA_API_SYMBOL);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from data to function pointers */
    *api = entry ? entry() : NULL;
    if (!*api || (*api)->version != CUDA_API_VERSION)
        return env_fail(e, MNP_EUNSUPPORTED, "CUDA cannot be used: %s belongs to another version",
                        file_name);
    return MNP_OK;
}

mnp_status cuda_load(env *e, const cuda_api **api, cuda_device_info *info) {
    enum { NO_DEVICE = 100, OLD_DRIVER = 35 };
    MNP_TRY(find_api(e, api));
    *info = (cuda_device_info){0};
    int error = (*api)->probe(info);
    if (error == NO_DEVICE)
        return env_fail(e, MNP_EUNSUPPORTED, "CUDA cannot be used: there is no GPU");
    if (error == OLD_DRIVER)
        return env_fail(e, MNP_EUNSUPPORTED,
                        "CUDA cannot be used: there is no NVIDIA driver, or it is too old");
    if (error)
        return env_fail(e, MNP_EUNSUPPORTED, "CUDA cannot be used: %s", (*api)->error_text(error));
    int has = info->major * 10 + info->minor;
    if (has != info->built_for)
        return env_fail(e, MNP_EUNSUPPORTED,
                        "CUDA cannot be used: %s has compute capability %d.%d, this build is for "
                        "%d.%d (make ARCH=%d)",
                        info->name, info->major, info->minor, info->built_for / 10,
                        info->built_for % 10, has);
    return MNP_OK;
}
