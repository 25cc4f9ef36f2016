#include "config/own_program.h"

#include <expected>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/result.h"

namespace trainyard {

Result<std::string> own_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return std::unexpected(Error{"cannot find out which program this is: " + error.message()});
  }
  return self.string();
}

}  // namespace trainyard
