/* loader.c: see loader.h; base/object.h says where the shared object is looked for. */
#include "backend/cuda/host/loader.h"

#include "base/object.h"

static const char file_name[] = "libmnp_cuda.so";

static mnp_status find_api(env *e, const cuda_api **api) {
    object_fn found;
    *api = NULL;
    mnp_status status =
        object_load(e, file_name, CUDA_API_SYMBOL, "it is built where nvcc is installed", &found);
    if (status != MNP_OK) return env_context(e, status, "CUDA cannot be used");
    *api = ((cuda_api_entry)found)();
    if (!*api || (*api)->version != CUDA_API_VERSION)
        return env_fail(e, MNP_EUNSUPPORTED, "CUDA cannot be used: %s belongs to another version",
                        file_name);
    return MNP_OK;
}

static mnp_status check_device(env *e, const cuda_device_info *info) {
    if (info->major >= CUDA_OLDEST) return MNP_OK;
    return env_fail(e, MNP_EUNSUPPORTED,
                    "CUDA cannot be used: %s has compute capability %d.%d, and %d.0 or later is "
                    "needed",
                    info->name, info->major, info->minor, CUDA_OLDEST);
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
    return check_device(e, info);
}

mnp_status cuda_select(env *e, const cuda_api *api, int ordinal, cuda_device_info *info) {
    int error = api->select(ordinal);
    if (!error) error = api->probe(info);
    if (!error) return check_device(e, info);
    return env_fail(e, MNP_EDEVICE, "GPU %d of this host cannot be used: %s", ordinal,
                    api->error_text(error));
}

bool cuda_has_full(const cuda_device_info *info) {
    return info->major == 9 && info->minor == 0;
}
