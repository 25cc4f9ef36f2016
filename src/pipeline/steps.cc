#include "trainyard/steps.h"

#include <fmt/format.h>

#include "base/result.h"
#include "sys/files.h"

namespace trainyard::detail {

std::string more_than_text(std::string_view member, double value, double limit) {
  return fmt::format("{} is {:.6g}, more than {:.6g}", member, value, limit);
}

void save_file(const std::string& directory, const std::string& name, std::string_view bytes) {
  Result<void> done = sys::make_directories(directory);
  if (done) done = sys::write_file_atomically(directory + "/" + name, bytes);
  if (!done) throw std::runtime_error(done.error().message);
}

}  // namespace trainyard::detail
