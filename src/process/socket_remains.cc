#include "process/socket_remains.h"

#include <unistd.h>

#include "sys/files.h"
#include "sys/pidfd.h"

namespace trainyard::process {

void SocketRemains::add(std::string directory) {
  if (directories_.size() < kMax) directories_.push_back(std::move(directory));
}

bool SocketRemains::yard_has_ended(Duration within) const {
  return !yard_.is_open() || sys::wait_until_ended(yard_, within);
}

void SocketRemains::remove(Duration within) const {
  if (directories_.empty() || !yard_has_ended(within)) return;
  for (const std::string& directory : directories_) {
    ::unlink((directory + "/control").c_str());
    for (const std::string& name : sys::names_in(directory)) {
      if (!name.ends_with(".log")) continue;
      std::string path = directory;
      path.append("/").append(name);
      ::unlink(path.c_str());
    }
    ::rmdir(directory.c_str());
  }
}

}  // namespace trainyard::process
