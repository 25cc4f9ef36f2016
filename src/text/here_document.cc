#include "text/here_document.h"

#include <algorithm>
#include <string_view>

namespace trainyard::text {

bool HereEnd::is_ended_by(std::string_view line) const {
  if (tabs_stripped) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
  return line == word;
}

bool HereEnd::may_be_ended_by(std::string_view line) const {
  const auto end = std::min(line.find_last_not_of(")`") + 1, line.size());
  return is_ended_by(line) || is_ended_by(line.substr(0, end));
}

}  // namespace trainyard::text
