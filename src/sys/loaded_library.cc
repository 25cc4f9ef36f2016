#include "sys/loaded_library.h"

#include <dlfcn.h>

namespace trainyard::sys {

void* load_library(const char* name) { return ::dlopen(name, RTLD_NOW | RTLD_LOCAL); }

void* function_in(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace trainyard::sys
