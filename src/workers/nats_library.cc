#include "workers/nats_library.h"

#include <cstdint>
#include <expected>

#include "sys/loaded_library.h"
#include "sys/this_process.h"

namespace trainyard::workers {
namespace {

bool find_all(void* in, NatsLibrary& to) {
#define TRAINYARD_NATS_FIND(member, function) &&sys::find_function(in, #function, to.member)
  return true TRAINYARD_NATS_FUNCTIONS(TRAINYARD_NATS_FIND);
}

}  // namespace

Result<NatsLibrary> load_nats_library() {
  for (const char* const name : {"libnats.so.3.4", "libnats.so.3.5", "libnats.so.3.6",
                                 "libnats.so.3.7", "libnats.so.3.8", "libnats.so"}) {
    void* const opened = sys::load_library(name);
    NatsLibrary library;
    if (opened == nullptr || !find_all(opened, library)) continue;
    // Its threads see that a server is lost. They start once in a process, and a fork that has the
    // state of the library does not have them.
    static const std::int64_t process = sys::own_pid();
    if (process == sys::own_pid()) return library;
    return std::unexpected(
        Error{"NATS: this process was forked after its parent had used libnats, whose threads are "
              "not in a fork: fork it before that, or start a program"});
  }
  return std::unexpected(
      Error{"NATS: libnats is not here: 'apt install libnats3.4' brings version 3.4"});
}

}  // namespace trainyard::workers
