#include "report/log_text.h"

#include <utility>

namespace trainyard::report {

std::string CarriageFolder::feed(std::string_view piece) {
  std::string out;
  for (const char letter : piece) {
    if (letter == '\n') {
      out += line_;
      out += '\n';
      line_.clear();
      returned_ = false;
    } else if (letter == '\r') {
      returned_ = true;
    } else {
      // Only now is it clear that the carriage return was not the first half of a line's end.
      if (std::exchange(returned_, false)) line_.clear();
      line_ += letter;
      if (line_.size() > kLineMax) out += std::exchange(line_, {});
    }
  }
  return out;
}

std::string CarriageFolder::finish() {
  returned_ = false;
  if (line_.empty()) return {};
  return std::exchange(line_, {}) + "\n";
}

}  // namespace trainyard::report
